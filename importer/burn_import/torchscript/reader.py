"""An archive of ``torch.jit.save`` to the model in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from burn_import.exported.builder import OPSETS
from burn_import.onnx.files import map_file
from burn_import.options import Extents
from burn_import.pytorch.limits import LIMITS, Limits
from burn_import.torchscript.archive import Archive
from burn_import.torchscript.inputs import plans
from burn_import.torchscript.program import Program
from burn_ir import ModelError, RawGraph, RawModel


def read(
    path: str | Path,
    shapes: Mapping[str, Extents] | None = None,
    *,
    limits: Limits = LIMITS,
) -> RawModel:
    """The model in a TorchScript archive, without PyTorch.

    Weights are read-only views of the file, and nothing in it is executed. ``shapes``
    are extents of inputs by name, where the archive does not have them or others are
    wanted.

    Raises:
        UnreadableFile: the file is damaged, or no such archive.
        UnsupportedModel: the code uses what is not supported; everything is listed. Or
            an extent is needed that nobody gave.
        InvalidModel: it contradicts itself.
    """
    path = Path(path)
    try:
        graph = _graph(Archive(map_file(path), limits), shapes or {})
        return RawModel(graph, dict(OPSETS), "pytorch")
    except ModelError as error:
        named = [
            replace(problem, message=f"{path.name}: {problem.message}")
            for problem in error.problems
        ]
        raise type(error)(named) from error


def _graph(archive: Archive, shapes: Mapping[str, Extents]) -> RawGraph:
    """The graph of the most general extents that the program allows."""
    program = Program(archive)
    defaults = len(program.forward.node.args.defaults)
    tried: list[dict[str, Any]] = []
    failed: ModelError | None = None
    for given in plans(program.parameters, archive.inputs, shapes, defaults):
        if given in tried:
            continue
        tried.append(given)
        try:
            return program.graph(given)
        except ModelError as error:
            failed = error
    assert failed is not None
    raise failed
