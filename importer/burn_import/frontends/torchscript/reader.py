"""Entry point: the model in an archive of ``torch.jit.save``."""

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from burn_import.frontends.checkpoints.limits import LIMITS, Limits
from burn_import.frontends.onnx.files import map_file
from burn_import.frontends.torch_export.builder import BOOL, FLOAT32, INT64, OPSETS
from burn_import.frontends.torchscript.archive import Archive, TooMuch
from burn_import.frontends.torchscript.inputs import Inputs, Key
from burn_import.frontends.torchscript.program import Program
from burn_import.options import Extents
from burn_ir import ModelError, RawGraph, RawModel
from burn_ir.dim import Dim
from burn_ir.support_check import walk

#: Pairs of more inputs than these are not tried: each try follows the whole program.
_MOST_PAIRED = 6


def read(
    path: str | Path,
    shapes: Mapping[str, Extents] | None = None,
    *,
    restores_dropout: bool = False,
    limits: Limits = LIMITS,
) -> RawModel:
    """Return the model in a TorchScript archive, without PyTorch.

    Weights are read-only views of the file, and nothing in it is executed. ``shapes``
    are extents of inputs by name, for inputs without an example and to override those
    of the trace. With ``restores_dropout`` dropout of a module in evaluation mode is
    written too.

    Raises:
        UnreadableFile: the file is damaged, or no such archive.
        UnsupportedModel: the code uses unsupported features, all of which are listed,
            or
            a required shape is missing.
        InvalidModel: it contradicts itself.
    """
    path = Path(path)
    try:
        archive = Archive(map_file(path), limits)
        program = Program(archive, restores_dropout=restores_dropout)
        graph = _graph(archive, program, shapes or {})
        return RawModel(graph, dict(OPSETS), "pytorch", program.notes)
    except ModelError as error:
        raise error.in_file(path.name) from error


def _graph(
    archive: Archive, program: Program, shapes: Mapping[str, Extents]
) -> RawGraph:
    """Return the graph of the program, with all extents symbolic that may vary."""
    defaults = len(program.forward.node.args.defaults)
    inputs = Inputs(program.parameters, defaults, archive.inputs, shapes)
    graph = _traced_graph(program, inputs)
    squeezed = _squeezed_axes(graph)

    def variant(extents: Mapping[Key, Dim]) -> RawGraph | None:
        """Return the graph for other extents; None if they do not fit the program.

        ``torch.squeeze`` removes an axis in some calls and not in others: an extent of
        1 in the trace that decides this stays 1.
        """
        other = _graph_if_valid(program, inputs.types(extents))
        if other is None or _squeezed_axes(other) != squeezed:
            return None
        return other

    def allows(extents: Mapping[Key, Dim]) -> bool:
        return variant(extents) is not None

    groups = inputs.open(allows)
    parts = inputs.divided(groups, allows)
    batches = [keys for keys in groups if keys[0][0] == 0]
    for opened in (groups + parts if parts else [], groups):
        if opened:
            general = variant(inputs.named(opened))
            if general is not None:
                return general
    return _most_general(variant, inputs, batches, groups) or graph


def _most_general(
    variant: Callable[[Mapping[Key, Dim]], RawGraph | None],
    inputs: Inputs,
    batches: list[list[Key]],
    groups: list[list[Key]],
) -> RawGraph | None:
    """Return the graph with as many symbolic extents as possible, None without any.

    Another number may be allowed for an extent, and a symbol not: the channels of a
    normalization without weights.
    """
    general, opened = None, list[list[Key]]()
    for group in batches + [keys for keys in groups if keys not in batches]:
        wider = [*opened, group]
        graph = variant(inputs.named(wider))
        if graph is not None:
            general, opened = graph, wider
    return general


def _traced_graph(program: Program, inputs: Inputs) -> RawGraph:
    """Return the graph for the extents of the trace, inferring dtypes of inputs."""
    try:
        return program.graph(inputs.types({}))
    except TooMuch:
        raise
    except ModelError as error:
        failed = error
    # Unsupported features do not depend on the dtypes.
    for names in _retyped_together(list(inputs.dtypes) if program.contradicts else []):
        if any(inputs.dtypes[name] != FLOAT32 for name in names):
            continue
        for dtype in (INT64, BOOL):
            reached = program.reached
            inputs.dtypes.update(dict.fromkeys(names, dtype))
            try:
                return program.graph(inputs.types({}))
            except ModelError as error:
                if program.reached > reached:
                    failed = error
                    break
                inputs.dtypes.update(dict.fromkeys(names, FLOAT32))
                program.reached = reached
    raise failed


def _retyped_together(names: list[str]) -> list[tuple[str, ...]]:
    """Return inputs whose dtype is tried together: ``a & b`` needs both at once."""
    single: list[tuple[str, ...]] = [(name,) for name in names]
    if len(names) > _MOST_PAIRED:
        return single
    return [*single, *combinations(names, 2), *single]


def _squeezed_axes(graph: RawGraph) -> int:
    """Return how many axes are squeezed, except of the parts of a shape or split."""
    nodes = [*walk(graph)]
    parts = {
        name
        for node in nodes
        if node.op_type in ("Shape", "Split")
        for name in node.outputs
    }
    stored: dict[str | None, Any] = {
        node.outputs[0]: node.attrs["value"]
        for node in nodes
        if node.op_type == "Constant"
    }
    stored.update(graph.constants)
    return sum(
        np.size(stored.get(node.inputs[1], 0))
        for node in nodes
        if node.op_type == "Squeeze" and node.inputs[0] not in parts
    )


def _graph_if_valid(program: Program, arguments: Mapping[str, Any]) -> RawGraph | None:
    """Return the graph for these inputs; None if they do not fit the program."""
    try:
        return program.graph(arguments)
    except ModelError:
        return None
