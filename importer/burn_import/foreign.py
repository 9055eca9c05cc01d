"""Messages on unsupported files and folders, with remedies."""

from difflib import get_close_matches
from pathlib import Path

from burn.record import Foreign, files

EXPORT = "Export the model to ONNX with torch.onnx.export and import that."
REMEDY = f"{EXPORT} The weights alone become a record with -o NAME.safetensors."
AGAIN = "Compare its size with the original; copy, download or export it again."
SHARDED = (
    "expected a file, got a checkpoint in shards (torch.distributed.checkpoint). Make "
    "it one file with python -m torch.distributed.checkpoint.format_utils dcp_to_torch "
    "FOLDER NAME.pt"
)
_SAVED_MODEL = "python -m tf2onnx.convert --saved-model FOLDER --output NAME.onnx"
#: Typical files of known folder kinds, and advice for each kind.
_FOLDERS = (
    ("saved_model.pb", f"Convert this SavedModel of TensorFlow with {_SAVED_MODEL}"),
    ("Manifest.json", "Export the model that Core ML was converted from to ONNX."),
    ("model.safetensors.index.json", "Pass model.safetensors.index.json in it."),
    ("model.safetensors", "Pass model.safetensors in it."),
)


_SKLEARN = "Convert it to ONNX with skl2onnx.to_onnx(model, X), where it was trained."
_IF_SKLEARN = f"If it is a model of scikit-learn, {_SKLEARN[0].lower()}{_SKLEARN[1:]}"
_TREES = "Convert it to ONNX with onnxmltools, where it was trained."
#: The remedies for pickled objects, by package.
_PACKAGES = {
    "sklearn": _SKLEARN,
    "lightgbm": _TREES,
    "xgboost": _TREES,
    "catboost": "Write it as ONNX with model.save_model('NAME.onnx', format='onnx').",
    "keras": "Write it as ONNX with model.export('NAME.onnx', format='onnx').",
}
_TENSORRT = Foreign(
    "TensorRT engine", "Pass the ONNX file that it was built from; it is machine code."
)
_ORIGINAL = "Export the model that it was converted from to ONNX."
_PADDLE = Foreign(
    "PaddlePaddle model",
    "Convert it with paddle2onnx --model_dir FOLDER --model_filename NAME.pdmodel "
    "--params_filename NAME.pdiparams --save_file NAME.onnx.",
)
_CAFFE = Foreign("Caffe model", "Convert it to ONNX, for example with caffe2onnx.")
_DARKNET = Foreign(
    "Darknet model", "Convert it to ONNX from the program that trains it."
)
_FLAX = Foreign(
    "file of Flax", "Save its arrays as safetensors: flax.serialization reads them."
)
_WEIGHTS_OF_OPENVINO = Foreign(
    "file of raw weights, such as OpenVINO's",
    "Pass the ONNX file that the model was converted from.",
)
#: Formats that have no first bytes of their own, by the end of the name.
_NAMES = {
    **dict.fromkeys((".engine", ".plan", ".trt"), _TENSORRT),
    **dict.fromkeys((".pdmodel", ".pdiparams"), _PADDLE),
    **dict.fromkeys((".caffemodel", ".prototxt"), _CAFFE),
    **dict.fromkeys((".weights", ".cfg"), _DARKNET),
    **dict.fromkeys((".msgpack", ".flax"), _FLAX),
    ".bin": _WEIGHTS_OF_OPENVINO,
    ".joblib": Foreign("file of joblib", _IF_SKLEARN),
    ".params": Foreign("file of MXNet", "Export the model with mx.onnx.export_model."),
    ".ptl": Foreign("program of PyTorch Mobile", EXPORT),
    ".dlc": Foreign("container of Qualcomm's SNPE", _ORIGINAL),
    ".hef": Foreign("program of Hailo", _ORIGINAL),
    ".mnn": Foreign("MNN model", _ORIGINAL),
    ".rknn": Foreign("RKNN model", _ORIGINAL),
    ".pb": files.GRAPH_DEF,
    ".mlmodel": Foreign("Core ML model", _ORIGINAL),
}


def kind_by_name(path: Path) -> Foreign | None:
    """Return the format that files with the ending of this name usually have.

    For files that are not ONNX and whose first bytes identify no format.
    """
    return _NAMES.get(path.suffix.lower())


def object_remedy(kind: str) -> str:
    """Return the remedy for a pickled object of a class, by its package."""
    return _PACKAGES.get(kind.partition(".")[0], "")


def folder_remedy(folder: Path) -> str:
    """Return the remedy for a folder that was passed as a model."""
    remedies = (text for name, text in _FOLDERS if (folder / name).is_file())
    return next(remedies, "Pass the model file in it.")


def missing_remedy(path: Path) -> str:
    """Return a hint with files whose names resemble the missing one."""
    if path.parts[:1] in (("https:",), ("http:",)):
        return "Models are read from files: download it first."
    if not path.parent.is_dir():
        return f"There is no folder {str(path.parent)!r}."
    names = [file.name for file in path.parent.iterdir() if file.is_file()]
    near = [repr(name) for name in get_close_matches(path.name, names, 3, 0.7)]
    return f"Did you mean {' or '.join(near)}?" if near else ""
