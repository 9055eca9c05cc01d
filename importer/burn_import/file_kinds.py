"""Kinds of model files, recognized by their first bytes."""

from enum import Enum, auto
from pathlib import Path

from burn.record import HEAD_SIZE, Foreign, describe_foreign, files

INDEX = ".index.json"


class FileKind(Enum):
    """The reader for a kind of file."""

    ONNX = auto()
    EXPORTED_PROGRAM = auto()
    TORCHSCRIPT = auto()
    #: Weights without a program: checkpoints, pickles, safetensors, indices, .npz.
    WEIGHTS = auto()
    OTHER = auto()


_KINDS = {
    None: FileKind.ONNX,  # ONNX has no magic number
    files.ONNX: FileKind.ONNX,
    files.EXPORTED: FileKind.EXPORTED_PROGRAM,
    files.TORCHSCRIPT: FileKind.TORCHSCRIPT,
    files.LEGACY: FileKind.WEIGHTS,
    files.TORCH: FileKind.WEIGHTS,
    files.PICKLE: FileKind.WEIGHTS,
    files.SAFETENSORS: FileKind.WEIGHTS,
    files.NPZ: FileKind.WEIGHTS,
}


def file_kind(path: Path) -> FileKind:
    """Return the kind of a file; ONNX if the file does not exist."""
    kind = head_kind(_foreign(path))
    is_index = kind is FileKind.OTHER or kind is FileKind.ONNX
    return FileKind.WEIGHTS if is_index and path.name.endswith(INDEX) else kind


def head_kind(foreign: Foreign | None) -> FileKind:
    """Return the file kind for the format that ``describe_foreign`` reported."""
    return _KINDS.get(foreign, FileKind.OTHER)


def described(path: Path) -> str:
    """Return a description of the file, "" for ONNX models and missing files."""
    foreign = _foreign(path)
    if foreign is None or head_kind(foreign) is FileKind.ONNX:
        return ""
    return foreign.kind


def _foreign(path: Path) -> Foreign | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return describe_foreign(file.read(HEAD_SIZE))
