"""The modules of ``burn.nn`` that nodes are calls of."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from burn.dtypes import float32, is_float
from burn_ir.error_context import error_context
from burn_ir.graph import Graph, Node
from burn_ir.op import Layer
from burn_ir.types import Type


def layer_of(graph: Graph, node: Node) -> Layer | None:
    """Return the module that ``node`` calls; None if it calls none.

    A module with a ``dtype`` gets that of its weights.
    """
    types = [graph.type(name) for name in node.inputs]
    with error_context(node, graph.opsets):
        layer = node.op.layer(*types)
    return None if layer is None else _with_dtype(layer, types)


def _with_dtype(layer: Layer, types: Sequence[Type | None]) -> Layer:
    """Return ``layer`` with the dtype of its weights, if they have one in common."""
    if "dtype" in layer.options or not _has_dtype(layer.name):
        return layer
    weights = [types[i] for p, i in layer.weights.items() if p not in layer.tables]
    dtypes = {t.dtype for t in weights if t is not None}
    if len(dtypes) != 1 or dtypes == {float32}:
        return layer
    (dtype,) = dtypes
    if not is_float(dtype):
        return layer
    return replace(layer, options={**layer.options, "dtype": dtype})


@cache
def _has_dtype(name: str) -> bool:
    """Return whether a class of ``burn.nn`` has a parameter ``dtype``."""
    from burn import nn

    return "dtype" in inspect.signature(getattr(nn, name)).parameters
