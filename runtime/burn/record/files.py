"""Identification of files by their first bytes, with instructions.

Wrong files are more common than damaged ones: a Git LFS pointer, an error page saved as
a model, a ``.pt`` file instead of a record. Each is identified here, for all readers.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

HEAD_SIZE = 4096
#: In bytes. Text takes up to four times as much in memory, and is there twice.
MAX_HEADER = 16 * 2**20


class Foreign(NamedTuple):
    """The kind of a file, and a one-sentence instruction."""

    kind: str
    remedy: str


SAFETENSORS = Foreign("safetensors file", "Open it with burn.record.open_record.")
EMPTY = Foreign("empty file", "Write or download it again; the last try left nothing.")
LFS = Foreign("Git LFS pointer", "Fetch the real content with `git lfs pull`.")
ANNEX = Foreign("git-annex pointer", "Fetch the real content with `git annex get`.")
HTML = Foreign(
    "HTML page",
    "Download the file itself; the server answered with a page (a login, "
    "a license to accept, or an error).",
)
JSON = Foreign(
    "JSON text",
    "The index of a sharded model needs a name that ends in .index.json, and its "
    ".safetensors files beside it.",
)
ONNX = Foreign(
    "ONNX model (protobuf)",
    "Import it with burn-import NAME.onnx -o NAME.py, which writes the record too.",
)
TORCH = Foreign(
    "PyTorch checkpoint (zip)",
    "Import it with burn-import, or save its tensors with safetensors.torch.save_file.",
)
TORCHSCRIPT = Foreign(
    "TorchScript archive (zip)",
    "Import it with burn-import, which reads archives of torch.jit.save.",
)
EXPORTED = Foreign(
    "PyTorch exported program (.pt2, zip)",
    "Import it with burn-import, which reads torch.export archives.",
)
LEGACY = Foreign(
    "PyTorch checkpoint (pickle, before 1.6)",
    "Load it once in PyTorch and save it anew, or import it with burn-import.",
)
PICKLE = Foreign(
    "pickle",
    "Save its tensors as safetensors where it was made; loading a pickle runs code.",
)
TAR = Foreign(
    "tar archive",
    "If PyTorch before 0.1.11 wrote it, load it there and save it anew; else unpack it "
    "and pass the file inside.",
)
NPY = Foreign("NumPy array (.npy)", "Read it with numpy.load and write a record.")
NPZ = Foreign(
    "NumPy archive (.npz)",
    "Import it with burn-import, or read it with numpy.load and write a record.",
)
ZIP = Foreign("zip archive", "Unpack it and pass the file inside.")
GZIP = Foreign("gzip file", "Decompress it first, for example with `gzip -d`.")
ZSTD = Foreign("Zstandard file", "Decompress it first, for example with `zstd -d`.")
HDF5 = Foreign(
    "HDF5 file",
    "Export a Keras model with model.export('NAME.onnx', format='onnx'); read arrays "
    "alone with h5py and write them with burn.record.write_record.",
)
TFLITE = Foreign(
    "TFLite model",
    "Convert it to ONNX with python -m tf2onnx.convert --tflite NAME.tflite --output "
    "NAME.onnx.",
)
COREML = Foreign(
    "Core ML model (.mlmodel)",
    "Export the model that it was converted from to ONNX; there is no way back.",
)
_ORIGIN = (
    "Pass the ONNX file that it was made of, or export the original model to ONNX."
)
KERAS = Foreign(
    "Keras model (.keras)",
    "Load it with keras.saving.load_model and write ONNX with "
    "model.export('NAME.onnx', format='onnx').",
)
SAVED_MODEL = Foreign(
    "SavedModel of TensorFlow",
    "Convert its folder with python -m tf2onnx.convert --saved-model FOLDER --output "
    "NAME.onnx.",
)
GRAPH_DEF = Foreign(
    "graph of TensorFlow (.pb)",
    "Convert it with python -m tf2onnx.convert --graphdef NAME.pb --inputs X:0 "
    "--outputs Y:0 --output NAME.onnx.",
)
TENSORRT = Foreign("TensorRT engine", f"It is machine code for one GPU. {_ORIGIN}")
ORT = Foreign("model in the format of onnxruntime (.ort)", _ORIGIN)
EXECUTORCH = Foreign(
    "ExecuTorch program (.pte)",
    "Save the exported program with torch.export.save before it is lowered, and import "
    "that.",
)
OPENVINO = Foreign("OpenVINO model (.xml)", _ORIGIN)
NCNN = Foreign("ncnn model (.param)", _ORIGIN)
GGUF = Foreign("GGUF model", "Use the safetensors files it was converted from.")
GENERATED = Foreign(
    "module that burn-import wrote",
    "Pass the model that it was made of. Its own commands are `check`, `export`, and "
    "`verify MODEL --module FILE`.",
)
PYTHON = Foreign(
    "Python source",
    "Export the model from a program that loads it, with torch.onnx.export or "
    "torch.export.save.",
)
BURNPACK = Foreign(
    "Burn record (.bpk)", "Read it with burn.record.read_record or burn.store."
)

# (offset, bytes, format)
MAGICS = (
    (0, b"version https://git-lfs.github.com/spec/", LFS),
    (0, b"/annex/objects/", ANNEX),
    (0, b"\x80\x02\x8a\x0al\xfc\x9cF\xf9\x20j\xa8P\x19.", LEGACY),
    (0, b"\x93NUMPY", NPY),
    (0, b"\x89HDF\r\n\x1a\n", HDF5),
    (0, b"\x1f\x8b", GZIP),
    (0, b"\x28\xb5\x2f\xfd", ZSTD),
    (0, b"GGUF", GGUF),
    (0, b"NRUB", BURNPACK),
    (4, b"TFL3", TFLITE),
    (4, b"ORTM", ORT),
    (4, b"ET12", EXECUTORCH),
    (0, b"ftrt", TENSORRT),
    (0, b"ptrt", TENSORRT),
    (0, b"7767517\n", NCNN),
    (257, b"ustar", TAR),
)

HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")

# ModelProto's fields after ir_version, as tag bytes: producer name and version,
# domain, model version, documentation, graph, opset, metadata, functions.
ONNX_TAGS = frozenset(b"\x12\x1a\x22\x28\x32\x3a\x42\x72")
# The version of the format, and a description that begins with a named input.
_COREML_START = re.compile(
    rb"\x08.\x12[\x80-\xff]*[\x00-\x7f]\n[\x80-\xff]*[\x00-\x7f]\n", re.DOTALL
)
# A MetaGraphDef whose MetaInfoDef begins with its list of operators.
_SAVED_MODEL_START = re.compile(
    rb"\x08.\x12[\x80-\xff]*[\x00-\x7f]\n[\x80-\xff]*[\x00-\x7f]\x12", re.DOTALL
)
# A NodeDef that begins with its name; field 1 of ONNX is a number.
_GRAPH_DEF_START = re.compile(rb"\n[\x80-\xff]*[\x00-\x7f]\n[\x00-\x7f][!-~]")
_OPENVINO_START = re.compile(rb"(?:<\?xml[^>]*\?>\s*)?<net\b")
_PYTHON_START = re.compile(
    rb"#!.*python|[ru]?\"\"\"|(?:#.*\n|\s)*(?:import|from) +[\w., ]+(?:\n| import )"
)
PICKLE_PROTOCOLS = frozenset(b"\x02\x03\x04\x05")


def describe_foreign(head: bytes) -> Foreign | None:
    """Return the kind of the file that begins with ``head``; None if unknown.

    ``head`` is the first 4096 bytes, or the whole file if it is shorter (``b""`` means
    an empty file). Safetensors is checked first: its length field may equal any magic
    number.
    """
    if not head:
        return EMPTY
    for recognize in RECOGNIZERS:
        if (foreign := recognize(head)) is not None:
            return foreign
    return None


def _safetensors(head: bytes) -> Foreign | None:
    length = int.from_bytes(head[:8], "little")
    return SAFETENSORS if head[8:9] == b"{" and length <= MAX_HEADER else None


def _magic(head: bytes) -> Foreign | None:
    for offset, magic, kind in MAGICS:
        if head.startswith(magic, offset):
            return kind
    return None


def _zip(head: bytes) -> Foreign | None:
    """Return the kind of a zip file, from the names and content of first entries."""
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return None
    first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if first.endswith(b".npy"):
        return NPZ
    if first in (b"metadata.json", b"config.json") and b"keras" in head:
        return KERAS
    if b"/data/weights/" in first or b"archive_format" in head:
        return EXPORTED
    # torch.jit.save writes the tensors first, torch.save the pickle.
    # Weights that a module packed for its backend are of a class below __torch__ too.
    script = re.search(rb"__torch__(?!\.torch\.classes\.)", head)
    if script or re.search(rb"/data/[0-9]+$", first):
        return TORCHSCRIPT
    if first.endswith((b"/data.pkl", b"/version", b"/byteorder")):
        return TORCH
    return ZIP


def _pickle(head: bytes) -> Foreign | None:
    is_pickle = head[:1] == b"\x80" and head[1:2] and head[1] in PICKLE_PROTOCOLS
    return PICKLE if is_pickle else None


def _coreml(head: bytes) -> Foreign | None:
    """Return the kind Core ML if field 2 is a description, which ONNX does not have."""
    return COREML if _COREML_START.match(head) else None


def _tensorflow(head: bytes) -> Foreign | None:
    """Return the kind of a protobuf of TensorFlow, from its first two fields."""
    if _SAVED_MODEL_START.match(head):
        return SAVED_MODEL
    return GRAPH_DEF if _GRAPH_DEF_START.match(head) else None


def _onnx(head: bytes) -> Foreign | None:
    """Return the kind ONNX if the first bytes are typical; there is no magic number."""
    if len(head) < 3 or head[0] != 0x08:
        return None
    return ONNX if 0 < head[1] < 0x40 and head[2] in ONNX_TAGS else None


def _text(head: bytes) -> Foreign | None:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:16].lower().startswith(HTML_STARTS):
        return HTML
    if start.startswith(b"# Imported by burn-import "):
        return GENERATED
    if _PYTHON_START.match(start):
        return PYTHON
    if _OPENVINO_START.match(start):
        return OPENVINO
    return JSON if start[:1] == b"{" and start[1:].lstrip()[:1] == b'"' else None


RECOGNIZERS: tuple[Callable[[bytes], Foreign | None], ...] = (
    _safetensors,
    _magic,
    _zip,
    _pickle,
    _coreml,
    _tensorflow,
    _onnx,
    _text,
)
