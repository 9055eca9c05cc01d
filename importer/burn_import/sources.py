"""Reading of model files, whose format is recognized by content, not by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from burn_import.file_kinds import FileKind, file_kind
from burn_import.options import Extents, Hints
from burn_ir import RawModel

if TYPE_CHECKING:
    from burn_import.frontends.checkpoints import Checkpoint


def read(
    path: str | Path,
    hints: Hints | None = None,
    shapes: Mapping[str, Extents] | None = None,
    *,
    restores_dropout: bool = False,
) -> RawModel | Checkpoint:
    """Return the model in an ONNX file, a PyTorch program or a file of weights.

    Programs are those of ``torch.export`` (``.pt2``) and TorchScript. Weights of an
    architecture without a recipe are returned as a checkpoint. ``hints`` are facts
    that weights do not contain, ``shapes`` are dimensions of inputs by name for
    files that do not have them. With ``restores_dropout`` programs for inference have
    the dropout that they record and do not apply.

    Raises:
        UnreadableFile: it cannot be read as a model.
        UnsupportedModel: it uses unsupported features; all are listed.
        InvalidModel: it contradicts itself or its format.
    """
    path = Path(path)
    kind = file_kind(path)
    if kind is FileKind.EXPORTED_PROGRAM:
        from burn_import.frontends.torch_export import read as read_exported

        return read_exported(path, restores_dropout=restores_dropout)
    if kind is FileKind.TORCHSCRIPT:
        from burn_import.frontends.torchscript import read as read_script

        return read_script(path, shapes, restores_dropout=restores_dropout)
    if kind is FileKind.WEIGHTS:
        from burn_import.frontends.recipes import model_of

        return model_of(path, hints or Hints())
    from burn_import.frontends.onnx import read as read_onnx
    from burn_import.frontends.onnx.dropout import with_dropout

    model = read_onnx(path)
    return with_dropout(model) if restores_dropout else model
