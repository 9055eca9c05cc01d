"""Sorting, cumulative sums and searches."""

from typing import Any

from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    INT64,
    Builder,
    Operand,
    Value,
    kind_of,
)
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


@rule("aten.sort.default", "aten.sort.stable")
def sort(
    g: Builder,
    self: Value,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
) -> tuple[Value, ...]:
    if self.rank == 0:
        return self, g.constant(0)
    options = {"axis": dim, "descending": descending or None}
    values, order = g.many("Sort", 2, self, domain="burn", **options)
    return values, Value(order.name, INT64)


@rule("aten.argsort.default", "aten.argsort.stable")
def argsort(
    g: Builder,
    self: Value,
    stable: bool = False,
    dim: int = -1,
    descending: bool = False,
) -> Value:
    return sort(g, self, stable, dim, descending)[1]


@rule("aten.msort.default")
def msort(g: Builder, self: Value) -> Value:
    return sort(g, self, None, 0)[0]


@rule("aten.topk.default")
def topk(
    g: Builder,
    self: Value,
    k: int | Value,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[Value, ...]:
    if self.rank == 0:
        return self, g.constant(0)
    values, order = g.many(
        "TopK", 2, self, g.ints(k), axis=dim, largest=None if largest else 0
    )
    return values, Value(order.name, INT64)


@rule("aten.kthvalue.default")
def kthvalue(
    g: Builder, self: Value, k: int | Value, dim: int = -1, keepdim: bool = False
) -> tuple[Value, ...]:
    rank = k - 1 if isinstance(k, int) else g.at(INT64).op("Sub", k, 1)
    return _select_rank(g, self, rank, dim, keepdim)


def _select_rank(
    g: Builder, x: Value, rank: int | Value, dim: int, keepdim: bool
) -> tuple[Value, ...]:
    """Return the element of a rank along an axis, and its index."""
    if x.rank == 0:
        return x, g.constant(0)
    ordered = sort(g, x, None, dim)
    index = g.value(rank, INT64)
    if not keepdim:
        return tuple(g.op("Gather", part, index, axis=dim) for part in ordered)
    index = g.ints(rank)
    return tuple(g.op("Gather", part, index, axis=dim) for part in ordered)


def median_rank(g: Builder, x: Value, dim: int) -> int | Value:
    """Return the rank of the lower median along an axis."""
    extent = x.dims[dim] if x.dims else None
    if isinstance(extent, int):
        return (extent - 1) // 2
    of = g.at(INT64)
    axis = x.axis(dim)
    count = of.op("Squeeze", of.op("Shape", x, start=axis, end=axis + 1), [0])
    return of.op("FloorDiv", of.op("Sub", count, 1), 2, domain="burn")


@rule("aten.median.dim")
def median(
    g: Builder, self: Value, dim: int, keepdim: bool = False
) -> tuple[Value, ...]:
    """Return the lower median along an axis, NaN if any element is, and its index."""
    if self.rank == 0:
        return self, g.constant(0)
    value, index = _select_rank(g, self, median_rank(g, self, dim), dim, keepdim)
    return unless_nan(g, value, self, [dim], keepdim), index


@rule("aten.median.default")
def median_of_all(g: Builder, self: Value) -> Value:
    flat = g.op("Reshape", self, [-1])
    of = g.at(INT64)
    last = of.op("Sub", of.op("Size", self), 1)
    rank = of.op("FloorDiv", last, 2, domain="burn")
    value = g.op("Gather", sort(g, Value(flat.name, g.dtype, (0,)))[0], rank)
    return unless_nan(g, value, self, None, False)


def unless_nan(
    g: Builder, result: Value, x: Value, axes: list[int] | None, keepdim: bool
) -> Value:
    """Return a result of sorted elements, or NaN where one of the elements is NaN."""
    if kind_of(x.dtype) < kind_of(FLOAT32) or x.dims == ():
        return result
    largest = g.op("ReduceMax", x, axes, keepdims=int(keepdim))
    return g.op("Where", g.at(BOOL).op("IsNaN", largest), largest, result)


@rule("aten.nanmedian.dim")
def nanmedian(
    g: Builder, self: Value, dim: int, keepdim: bool = False
) -> tuple[Value, Value]:
    """Return the lower median along an axis without NaN, and its index.

    NaN is sorted to the end.
    """
    if self.rank == 0:
        return self, g.constant(0)
    whole = g.at(INT64)
    values, order = sort(g, self, dim=dim)
    is_number = whole.cast(g.at(BOOL).op("Not", g.at(BOOL).op("IsNaN", self)))
    last = whole.op("Sub", whole.op("ReduceSum", is_number, [dim]), 1)
    rank = whole.op("Max", whole.op("FloorDiv", last, 2, domain="burn"), 0)
    results = [g.op("GatherElements", x, rank, axis=dim) for x in (values, order)]
    if not keepdim:
        results = [g.op("Squeeze", x, [dim]) for x in results]
    return results[0], results[1]


@rule("aten.nanmedian.default")
def nanmedian_of_all(g: Builder, self: Value) -> Value:
    flat = g.op("Reshape", self, [-1])
    return nanmedian(g, Value(flat.name, self.dtype, (-1,)), 0)[0]


@rule("aten.cumsum.default")
def cumsum(g: Builder, self: Value, dim: int, dtype: Any = None) -> Value:
    return _running(g, "CumSum", g.cast(self), dim)


@rule("aten.cumprod.default")
def cumprod(g: Builder, self: Value, dim: int, dtype: Any = None) -> Value:
    return _running(g, "CumProd", g.cast(self), dim)


def _running(g: Builder, op_type: str, x: Value, dim: int) -> Value:
    return x if x.dims == () else g.op(op_type, x, g.constant(dim))


@rule("aten.logcumsumexp.default")
def logcumsumexp(g: Builder, self: Value, dim: int) -> Value:
    if self.rank == 0:
        return self
    return g.op("LogCumSumExp", self, domain="burn", axis=dim)


@rule("aten.diff.default")
def diff(
    g: Builder,
    self: Value,
    n: int = 1,
    dim: int = -1,
    prepend: Value | None = None,
    append: Value | None = None,
) -> Value:
    parts = [part for part in (prepend, self, append) if part is not None]
    x = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=dim)
    for _ in range(n):
        later = g.op("Slice", x, [1], [2**63 - 1], [dim])
        earlier = g.op("Slice", x, [0], [-1], [dim])
        x = g.op("Xor" if g.dtype == BOOL else "Sub", later, earlier)
    return x


@rule("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(
    g: Builder,
    sorted_sequence: Value,
    self: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """Return the number of elements of a row less than (or equal to) a value."""
    after = right or side == "right"
    row, value = g.common(sorted_sequence, self)
    if sorter is not None:
        row = g.at(row.dtype).op("GatherElements", row, sorter, axis=-1)
    if sorted_sequence.rank > 1:
        row = g.op("Unsqueeze", row, [-2])
    if isinstance(self, Value):
        value = g.op("Unsqueeze", value, [-1])
    before = g.op("LessOrEqual" if after else "Less", row, value)
    return g.op("ReduceSum", g.cast(Value(before.name, BOOL)), [-1], keepdims=0)


@rule("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(
    g: Builder,
    self: Operand,
    boundaries: Value,
    out_int32: bool = False,
    right: bool = False,
) -> Value:
    return searchsorted(g, boundaries, self, out_int32, right)


@rule("aten.isin.Tensor_Tensor")
def isin(
    g: Builder,
    elements: Value,
    test_elements: Value,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    a, b = g.common(elements, test_elements)
    each = g.op("Unsqueeze", a, [-1])
    equal = g.op("Equal", each, g.op("Reshape", b, [-1]))
    is_member = g.op("Any", equal, domain="burn", axes=(-1,))
    return g.op("Not", is_member) if invert else is_member


@rule("aten.isin.Scalar_Tensor")
def isin_of_scalar(
    g: Builder,
    element: Operand,
    test_elements: Value,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    return isin(g, g.common(element, test_elements)[0], test_elements, invert=invert)


@rule("aten.isin.Tensor_Scalar")
def isin_scalar(
    g: Builder,
    elements: Value,
    test_element: Operand,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    a, b = g.common(elements, test_element)
    is_member = g.op("Equal", a, b)
    return g.op("Not", is_member) if invert else is_member


@rule("aten._unique2.default")
def unique(
    g: Builder,
    self: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Value, Value, Value]:
    values, _, inverse, counts = g.many("Unique", 4, self)
    shaped = g.op("Reshape", inverse, g.op("Shape", self))
    return values, shaped, counts


@rule("aten.unique_dim.default")
def unique_dim(
    g: Builder,
    self: Value,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Value, Value, Value]:
    values, _, inverse, counts = g.many("Unique", 4, self, axis=dim)
    return values, inverse, counts


@rule("aten.unique_consecutive.default")
def unique_consecutive(
    g: Builder,
    self: Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Value, Value, Value]:
    """Return elements without repetitions, inverse indices, and counts."""
    if dim is not None:
        raise UnsupportedModel("unique_consecutive along an axis is not supported")
    whole, flat = g.at(INT64), g.op("Reshape", self, [-1])
    later = g.op("Slice", flat, [1], [2**63 - 1], [0])
    earlier = g.op("Slice", flat, [0], [-1], [0])
    of = g.at(BOOL)
    changes = of.op("Not", of.op("Equal", later, earlier))
    starts = of.op("Concat", of.constant([True], "bool"), changes, axis=0)
    group = whole.op("Sub", whole.op("CumSum", whole.cast(starts), g.constant(0)), 1)
    first = whole.op("Reshape", whole.op("NonZero", starts), [-1])
    ends = whole.op("Slice", first, [1], [2**63 - 1], [0])
    every = whole.op("Reshape", whole.op("Size", self), [1])
    counts = whole.op("Sub", whole.op("Concat", ends, every, axis=0), first)
    inverse = whole.op("Reshape", group, whole.op("Shape", self))
    return g.op("Compress", flat, starts, axis=0), inverse, counts
