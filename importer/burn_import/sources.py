"""Files that models are in: each is read as what it is, whatever it is called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from burn.record import HEAD_SIZE, describe_foreign
from burn_import.options import Extents, Hints
from burn_ir import RawModel

if TYPE_CHECKING:
    from burn_import.frontends.checkpoints import Checkpoint

EXPORTED = "PyTorch exported program (.pt2, zip)"
SCRIPT = "TorchScript archive (zip)"
WEIGHTS = frozenset(
    {
        "PyTorch checkpoint (pickle, before 1.6)",
        "PyTorch checkpoint (zip)",
        "pickle",
        "safetensors file",
    }
)


def read(
    path: str | Path,
    hints: Hints | None = None,
    shapes: Mapping[str, Extents] | None = None,
) -> RawModel | Checkpoint:
    """The model in an ONNX file or a program of PyTorch, or of some weights.

    Programs are those of ``torch.export`` (``.pt2``) and TorchScript. Weights of an
    architecture that there is no recipe for are returned as they are. ``hints`` say
    what weights do not, ``shapes`` are extents of inputs by name for files that do not
    have them.

    Raises:
        UnreadableFile: it is no model that can be read.
        UnsupportedModel: it uses what is not supported; everything is listed.
        InvalidModel: it contradicts itself or its format.
    """
    path = Path(path)
    kind = kind_of(path)
    if kind == EXPORTED:
        from burn_import.frontends.torch_export import read as read_exported

        return read_exported(path)
    if kind == SCRIPT:
        from burn_import.frontends.torchscript import read as read_script

        return read_script(path, shapes)
    if kind in WEIGHTS or path.name.endswith(".index.json"):
        from burn_import.frontends.recipes import model_of

        return model_of(path, hints or Hints())
    from burn_import.frontends.onnx import read as read_onnx

    return read_onnx(path)


def kind_of(path: Path) -> str:
    """What a file is if it is no ONNX model, as ``describe_foreign`` tells, else ""."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        foreign = describe_foreign(file.read(HEAD_SIZE))
    if foreign is None or foreign.kind.startswith("ONNX"):
        return ""
    return foreign.kind
