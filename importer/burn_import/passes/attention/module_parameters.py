"""The parameters of ``nn.MultiheadAttention``, from those of its projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from burn.dtypes import is_float
from burn_import.provenance.exporter_folding import is_folded
from burn_import.provenance.weight_owners import original
from burn_import.rewriting.arrays import are_identical
from burn_ir.graph import Graph, Node

#: The ends of the names of parameters that only this module has.
_NAMES = ("in_proj_weight", "in_proj_bias", "q_proj_weight")
_OUT = ("out_proj.weight", "out_proj.bias")


class Rows(NamedTuple):
    """Rows of a stored array, from the row ``start`` on."""

    name: str
    start: int


def may_have_modules(graph: Graph) -> bool:
    """Return whether the file has a parameter with a name of this module."""
    return any(name.endswith((*_NAMES, *_OUT)) for name in graph.constants)


def module_parameters(
    graph: Graph, out: Node, weights: Sequence[Rows], biases: Sequence[Rows], embed: int
) -> tuple[str | None, ...] | None:
    """Return the weight and bias of the output, the bias and weights of projections.

    None if they are not those of one module. ``weights`` are those for queries, keys
    and values, ``biases`` as well or empty.
    """
    out_weight, out_bias = (*out.inputs[1:], None)[:2]
    names = {str(out_weight), *(rows.name for rows in (*weights, *biases))}
    arrays = graph.constants
    if arrays[str(out_weight)].shape != (embed, embed):
        return None
    dtypes = {arrays[name].dtype for name in names}
    if len(dtypes) > 1 or not all(map(is_float, dtypes)):
        return None
    if len(biases) != (0 if out_bias is None else 3):
        return None
    own = _Parameters(graph, _folded_owner(graph, out, [*weights, *biases]), embed)
    stacked = own.stacked(weights, "in_proj_weight")
    bias = own.stacked(biases, "in_proj_bias") if biases else None
    if not own.owner and not _is_named(graph, [*weights, *biases]):
        return None
    if biases and bias is None:
        return None
    if stacked is not None:
        return out_weight, out_bias, bias, stacked
    shapes = [arrays[name].shape for name, _ in weights]
    is_apart = bool(biases) and {rows for rows, _ in shapes} == {embed}
    if not is_apart or {columns for _, columns in shapes} == {embed}:
        return None
    return (out_weight, out_bias, bias, *(name for name, _ in weights))


def _is_named(graph: Graph, rows: Sequence[Rows]) -> bool:
    """Return whether the file names one of the parameters as the module does."""
    return any(original(graph, name).endswith(_NAMES) for name, _ in rows)


def _folded_owner(graph: Graph, out: Node, rows: Sequence[Rows]) -> str:
    """Return the path of a module whose parameters an exporter stored in pieces.

    Only the parameters of the output have names. "" if it is no such module.
    """
    names = [original(graph, str(name)) for name in out.inputs[1:]]
    paths = [
        name.removesuffix(end) for name in names for end in _OUT if name.endswith(end)
    ]
    are_pieces = len(rows) == 6 and all(is_folded(graph, name) for name, _ in rows)
    return paths[0] if paths and are_pieces else ""


class _Parameters(NamedTuple):
    graph: Graph
    #: The path of the module with a dot, if its parameters are in pieces.
    owner: str
    embed: int

    def stacked(self, rows: Sequence[Rows], name: str) -> str | None:
        """Return the parameter of all three projections, None if there is none."""
        embed, arrays = self.embed, self.graph.constants
        if {r.name for r in rows} == {rows[0].name}:
            starts = [start for _, start in rows]
            shape = arrays[rows[0].name].shape
            if starts == [0, embed, 2 * embed] and shape in (
                (3 * embed,),
                (3 * embed, embed),
            ):
                return rows[0].name
        pieces = [arrays[array][start : start + embed] for array, start in rows]
        if not self.owner or len({piece.shape for piece in pieces}) > 1:
            return None
        if pieces[0].shape not in ((embed,), (embed, embed)):
            return None
        joined, name = np.concatenate(pieces), self.owner + name
        if name in arrays and are_identical(arrays[name], joined):
            return name
        return None if name in self.graph.types else arrays.add(name, joined)
