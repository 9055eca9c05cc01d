"""Norms of vectors and distances between vectors."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from burn_import.frontends.torch_export.aten.linalg.decompositions import spectral_norm
from burn_import.frontends.torch_export.aten.math.reduction import Axes, reduce
from burn_import.frontends.torch_export.builder import BOOL, INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel

#: The reductions that compute a norm of an order.
ORDERS = {1.0: "ReduceL1", 2.0: "ReduceL2"}


def vector_norm(
    g: Builder, x: Value, order: float, dim: Axes = None, keepdim: bool = False
) -> Value:
    """Return the norm of an order over axes."""
    x = g.cast(x)
    if order in ORDERS:
        return reduce(g, ORDERS[order], x, dim, keepdim)
    size = Value(g.op("Abs", x).name, g.dtype, x.dims)
    if math.isinf(order):
        best = "ReduceMax" if order > 0 else "ReduceMin"
        return reduce(g, best, size, dim, keepdim)
    if order == 0:
        counted = g.cast(g.cast(size, BOOL))
        return reduce(g, "ReduceSum", counted, dim, keepdim)
    powers = Value(g.op("Pow", size, float(order)).name, g.dtype, x.dims)
    total = reduce(g, "ReduceSum", powers, dim, keepdim)
    if order < 0:
        return g.op("Pow", total, 1 / float(order))
    # The gradient of a root at 0 is infinite, that of a norm is 0 in PyTorch.
    is_zero = g.at(BOOL).op("Equal", total, g.cast(0))
    root = g.op("Pow", g.op("Where", is_zero, g.cast(1), total), 1 / float(order))
    return g.op("Where", is_zero, g.cast(0), root)


@rule("aten.linalg_vector_norm.default")
def linalg_vector_norm(
    g: Builder,
    self: Value,
    ord: Any = 2,
    dim: Axes = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    return vector_norm(g, self, float(ord), dim, keepdim)


@rule(
    "aten.norm.Scalar",
    "aten.norm.ScalarOpt_dim",
    "aten.norm.ScalarOpt_dim_dtype",
    "aten.norm.ScalarOpt_dtype",
)
def norm(
    g: Builder,
    self: Value,
    p: Any = 2,
    dim: Axes = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    return vector_norm(g, self, 2.0 if p is None else float(p), dim, keepdim)


@rule("aten.linalg_norm.default")
def linalg_norm(
    g: Builder,
    self: Value,
    ord: Any = None,
    dim: Axes = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    of_matrix = dim is not None and not isinstance(dim, int) and len(dim) > 1
    if ord is not None and (of_matrix or (dim is None and self.rank > 1)):
        return matrix_norm(g, self, ord, dim or (-2, -1), keepdim)
    return vector_norm(g, self, 2.0 if ord is None else float(ord), dim, keepdim)


@rule("aten.linalg_matrix_norm.str_ord", "aten.linalg_matrix_norm.default")
@rule("aten.linalg_norm.ord_str")
def matrix_norm(
    g: Builder,
    self: Value,
    ord: Any = "fro",
    dim: Axes = (-2, -1),
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    dim = (-2, -1) if dim is None else dim
    if ord == "fro":
        return vector_norm(g, self, 2.0, dim, keepdim)
    if not isinstance(ord, str) and abs(ord) in (1, math.inf):
        assert dim is not None and not isinstance(dim, int)
        rows, columns = (axis % self.rank for axis in dim)
        summed = rows if abs(ord) == 1 else columns
        other = columns if abs(ord) == 1 else rows
        sums = g.op("ReduceL1", g.cast(self), [summed])
        best = "ReduceMax" if ord > 0 else "ReduceMin"
        norm = g.op(best, sums, [other])
        return norm if keepdim else g.op("Squeeze", norm, [rows, columns])
    if ord not in _SPECTRAL:
        raise UnsupportedModel(
            f"expected a matrix norm of order 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, "
            f"got {ord!r}"
        )
    assert dim is not None and not isinstance(dim, int)
    return spectral_norm(g, self, _SPECTRAL[ord], dim, keepdim)


#: The reductions of singular values for orders of matrix norms.
_SPECTRAL: Mapping[Any, str] = {"nuc": "ReduceSum", 2: "ReduceMax", -2: "ReduceMin"}


@rule("aten.dist.default")
def dist(g: Builder, self: Value, other: Value, p: Any = 2) -> Value:
    return vector_norm(g, g.op("Sub", *g.floats(self, other)), float(p))


@rule("aten.pairwise_distance.default")
def pairwise_distance(
    g: Builder,
    x1: Value,
    x2: Value,
    p: float = 2,
    eps: float = 1e-06,
    keepdim: bool = False,
) -> Value:
    difference = g.op("Add", g.op("Sub", *g.floats(x1, x2)), float(eps))
    return vector_norm(g, difference, float(p), -1, keepdim)


@rule("aten.cdist.default", "aten._cdist_forward.default")
def cdist(
    g: Builder, x1: Value, x2: Value, p: float = 2, compute_mode: int | None = None
) -> Value:
    difference = g.op("Sub", g.op("Unsqueeze", x1, [-2]), g.op("Unsqueeze", x2, [-3]))
    return vector_norm(g, difference, float(p), -1)


@rule("aten.pdist.default", "aten._pdist_forward.default")
def pdist(g: Builder, self: Value, p: float = 2) -> Value:
    """Return distances of the pairs above the diagonal, in row-major order."""
    count = self.dims[0] if self.dims else None
    if not isinstance(count, int):
        raise UnsupportedModel("expected pdist of a known number of rows")
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    ends = [g.op("Gather", self, [pair[k] for pair in pairs]) for k in (0, 1)]
    return vector_norm(g, g.op("Sub", *ends), float(p), -1)


@rule("aten.renorm.default")
def renorm(g: Builder, self: Value, p: Any, dim: int, maxnorm: Any) -> Value:
    """Return ``self`` with slices along ``dim`` scaled to a norm up to ``maxnorm``."""
    axis = self.axis(dim)
    others = [a for a in range(self.rank) if a != axis]
    length = vector_norm(g, self, float(p), others, True)
    factor = g.op("Div", g.cast(maxnorm), g.op("Add", length, 1e-7))
    is_long = g.op("Greater", length, float(maxnorm))
    return g.op("Mul", self, g.op("Where", is_long, factor, g.cast(1)))


@rule("aten.cosine_similarity.default")
def cosine_similarity(
    g: Builder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-08
) -> Value:
    """Return the cosines between vectors along an axis of the broadcast operands."""
    operands = g.floats(x1, x2)
    if x1.rank == x2.rank == 0:
        operands = [replace(g.op("Unsqueeze", x, [0]), dims=(1,)) for x in operands]
    elif x1.dims != x2.dims:
        shapes = [g.at(INT64).op("Shape", x) for x in reversed(operands)]
        largest = max(x1, x2, key=lambda x: x.rank)
        operands = [
            replace(g.op("Expand", x, shape), dims=largest.dims)
            for x, shape in zip(operands, shapes, strict=True)
        ]
    units = []
    for x in operands:
        length = g.op("Max", vector_norm(g, x, 2.0, dim, True), float(eps))
        units.append(g.op("Div", x, length))
    return g.op("ReduceSum", g.op("Mul", *units), [dim], keepdims=0)
