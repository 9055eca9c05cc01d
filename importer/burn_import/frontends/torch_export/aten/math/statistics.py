"""Quantiles, covariances and correlations."""

from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Operand,
    Value,
)
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


def quantile(
    g: Builder,
    self: Value,
    q: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Value:
    """Return quantiles, interpolated between neighbors in sorted order.

    Those of a vector ``q`` are the first axis of the result. If an element is NaN, so
    are all quantiles.
    """
    dim = dim if self.rank else None
    flat = dim is None
    x = g.op("Reshape", self, [-1]) if flat else self
    axis = 0 if dim is None else self.axis(dim)
    whole = g.at(INT64)
    count = whole.op("Squeeze", whole.op("Shape", x, start=axis, end=axis + 1), [0])
    last = g.cast(whole.op("Sub", count, 1))
    position = g.op("Mul", last, g.cast(q))
    below, above, part = _neighbors(g, x, position, axis, interpolation, "Gather")
    rank = 1 if flat else self.rank
    is_vector = isinstance(q, Value) and q.rank == 1
    if is_vector and interpolation != "midpoint":
        part = g.op("Reshape", part, [-1, *[1] * (rank - 1 - axis)])
    result = _interpolate(g, below, above, part)
    largest = g.op("ReduceMax", x, [axis], keepdims=int(is_vector))
    result = g.op("Where", g.at(BOOL).op("IsNaN", largest), largest, result)
    result = _with_first_axis(g, result, rank, axis) if is_vector else result
    return _with_kept_axes(g, result, self, dim, is_vector) if keepdim else result


def _with_first_axis(g: Builder, result: Value, rank: int, axis: int) -> Value:
    """Return ``result`` with the axis of the quantiles in front."""
    others = [n for n in range(rank) if n != axis]
    return g.op("Transpose", result, perm=[axis, *others]) if axis else result


def _neighbors(
    g: Builder, x: Value, position: Value, axis: int, interpolation: str, gather: str
) -> tuple[Value, Value, Value]:
    """Return the elements around sorted positions, and the fractions between them."""
    low, high = _neighbor_ranks(g, position, interpolation)
    ordered = g.op("Sort", x, domain="burn", axis=axis)
    below, above = (
        g.op(gather, ordered, g.cast(end, INT64), axis=axis) for end in (low, high)
    )
    part = g.op("Sub", position, low)
    return below, above, g.cast(0.5) if interpolation == "midpoint" else part


def _interpolate(g: Builder, below: Value, above: Value, part: Value) -> Value:
    return g.op("Add", below, g.op("Mul", g.op("Sub", above, below), part))


def _with_kept_axes(
    g: Builder, result: Value, x: Value, dim: int | None, is_vector: bool
) -> Value:
    """Return quantiles of ``x`` with axes of extent 1 for those that are gone."""
    if dim is None:
        return g.op("Reshape", result, [-1] * is_vector + [1] * x.rank)
    return g.op("Unsqueeze", result, [x.axis(dim) + is_vector])


def _neighbor_ranks(
    g: Builder, position: Value, interpolation: str
) -> tuple[Value, Value]:
    """Return the ranks below and above a position, as floating numbers."""
    names = {"lower": "Floor", "higher": "Ceil", "nearest": "Round"}
    if interpolation in names:
        only = g.op(names[interpolation], position)
        return only, only
    return g.op("Floor", position), g.op("Ceil", position)


rule("aten.quantile.scalar", "aten.quantile.default")(quantile)


@rule("aten.nanquantile.scalar", "aten.nanquantile.default")
def nanquantile(
    g: Builder,
    self: Value,
    q: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Value:
    """Return quantiles of the elements that are not NaN, which sort to the end."""
    dim = dim if self.rank else None
    x = g.op("Reshape", self, [-1]) if dim is None else self
    rank, axis = (1, 0) if dim is None else (self.rank, self.axis(dim))
    is_number = g.at(BOOL).op("Not", g.at(BOOL).op("IsNaN", x))
    count = g.op("ReduceSum", g.cast(is_number), [axis], keepdims=1)
    last = g.op("Max", g.op("Sub", count, 1), 0)
    fractions = g.op("Reshape", g.cast(q), [-1, *[1] * (rank - 1 - axis)])
    position = g.op("Mul", last, fractions)
    ends = _neighbors(g, x, position, axis, interpolation, "GatherElements")
    result = _interpolate(g, *ends)
    is_vector = isinstance(q, Value) and q.rank == 1
    if is_vector:
        result = _with_first_axis(g, result, rank, axis)
    else:
        result = g.op("Squeeze", result, [axis])
    return _with_kept_axes(g, result, self, dim, is_vector) if keepdim else result


@rule("aten.cov.default")
def cov(
    g: Builder,
    self: Value,
    correction: int = 1,
    fweights: Value | None = None,
    aweights: Value | None = None,
) -> Value:
    """Return the covariances of the rows, whose columns are observations."""
    if self.rank > 2:
        raise UnsupportedModel(f"cov: expected at most 2 axes, got {self.rank}")
    x = g.cast(self)
    x = g.op("Reshape", x, [1, -1]) if self.rank < 2 else x
    weights = _product(g, fweights, aweights)
    total, mean = _count_and_mean(g, x, weights)
    removed: Operand = correction
    if weights is not None and aweights is not None and correction:
        squares = g.op("Mul", weights, g.cast(aweights))
        squares = g.op("ReduceSum", squares, [0], keepdims=0)
        removed = g.op("Mul", g.op("Div", squares, total), correction)
    centered = g.op("Sub", x, mean)
    other = centered if weights is None else g.op("Mul", centered, weights)
    product = g.op("MatMul", centered, g.op("Transpose", other, perm=[1, 0]))
    result = g.op("Div", product, g.op("Max", g.op("Sub", total, removed), 0))
    return g.op("Reshape", result, []) if _has_one_row(self) else result


@rule("aten.corrcoef.default")
def corrcoef(g: Builder, self: Value) -> Value:
    """Return Pearson's correlations of the rows, limited to [-1, 1]."""
    covariances = cov(g, self)
    if _has_one_row(self):
        return g.op("Div", covariances, covariances)
    deviations = g.op("Std", g.cast(self), domain="burn", axes=(1,))
    by_row = g.op("Div", covariances, g.op("Unsqueeze", deviations, [1]))
    return g.op("Clip", g.op("Div", by_row, deviations), g.cast(-1), g.cast(1))


def _product(g: Builder, a: Value | None, b: Value | None) -> Value | None:
    """Return the product of the given weights, None without any."""
    weights = [g.cast(x) for x in (a, b) if x is not None]
    return (
        g.op("Mul", *weights) if len(weights) == 2 else weights[0] if weights else None
    )


def _count_and_mean(g: Builder, x: Value, weights: Value | None) -> tuple[Value, Value]:
    """Return the number of observations, or the sum of weights, and the row means."""
    if weights is None:
        whole = g.at(INT64)
        count = whole.op("Squeeze", whole.op("Shape", x, start=1, end=2), [0])
        return g.cast(count), g.op("ReduceMean", x, [1], keepdims=1)
    total = g.op("ReduceSum", weights, [0], keepdims=0)
    weighted = g.op("ReduceSum", g.op("Mul", x, weights), [1], keepdims=1)
    return total, g.op("Div", weighted, total)


def _has_one_row(x: Value) -> bool:
    return x.dims is not None and (len(x.dims) < 2 or x.dims[0] == 1)
