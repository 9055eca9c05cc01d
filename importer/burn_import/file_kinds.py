"""Kinds of files that models are in, told by their first bytes."""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path

from burn.record import HEAD_SIZE, Foreign, describe_foreign, files

INDEX = ".index.json"


class FileKind(Enum):
    """What reads a file."""

    ONNX = auto()
    EXPORTED_PROGRAM = auto()
    TORCHSCRIPT = auto()
    #: Weights without a program: checkpoints, pickles, safetensors files, indices.
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
}


def file_kind(path: Path) -> FileKind:
    """Return the kind of a file; ONNX if there is no file."""
    kind = head_kind(_foreign(path))
    is_index = kind is FileKind.OTHER or kind is FileKind.ONNX
    return FileKind.WEIGHTS if is_index and path.name.endswith(INDEX) else kind


def head_kind(foreign: Foreign | None) -> FileKind:
    """Return the kind of a file that begins as ``describe_foreign`` reports."""
    return _KINDS.get(foreign, FileKind.OTHER)


def described(path: Path) -> str:
    """Return what a file is in words, "" for ONNX models and missing files."""
    foreign = _foreign(path)
    if foreign is None or head_kind(foreign) is FileKind.ONNX:
        return ""
    return foreign.kind


def _foreign(path: Path) -> Foreign | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return describe_foreign(file.read(HEAD_SIZE))
