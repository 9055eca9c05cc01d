"""Files that models are in: each is read as what it is, whatever it is called."""

from __future__ import annotations

from pathlib import Path

from burn.record import HEAD_SIZE, describe_foreign
from burn_import.foreign import refuse_not_yet
from burn_ir import RawModel

EXPORTED = "PyTorch exported program (.pt2, zip)"


def read(path: str | Path) -> RawModel:
    """The model in an ONNX file or an exported program of PyTorch (``.pt2``).

    Raises:
        UnreadableFile: it is no model that can be read.
        UnsupportedModel: it uses what is not supported; everything is listed.
        InvalidModel: it contradicts itself or its format.
    """
    path = Path(path)
    refuse_not_yet(path)
    if is_exported(path):
        from burn_import.exported import read as read_exported

        return read_exported(path)
    from burn_import.onnx import read as read_onnx

    return read_onnx(path)


def is_exported(path: Path) -> bool:
    """Whether a file is an archive of ``torch.export.save``."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        foreign = describe_foreign(file.read(HEAD_SIZE))
    return foreign is not None and foreign.kind == EXPORTED
