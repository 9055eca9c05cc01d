"""Indexing: gathering, slicing and rearranging by operands."""

from __future__ import annotations

from typing import Literal

from burn import dtypes, ops
from burn.dtypes import int64, is_float
from burn_ir.dim import FAR, Dim, span, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.support import (
    are_unequal_numbers,
    dims_of,
    ints_of,
    known_dims,
    known_ints,
    length,
    run_of,
    shape_of,
    unnamed_dims,
)
from burn_ir.types import is_unnamed
from burn_ir.upgrade import Draft


@operator
class Gather(Op, onnx="Gather", versions=(1, 11, 13)):
    axis: int = 0

    def infer(self, data: Type, indices: Type) -> Type:
        check_integers(indices)
        if data.shape is None or indices.shape is None:
            return data.with_shape(None)
        (axis,) = data.axes(self.axis)
        dims = (*data.dims[:axis], *indices.dims, *data.dims[axis + 1 :])
        return data.with_shape(dims)

    def lower(self, data: Value, indices: Value) -> Value:
        numbers = dims_of(indices)
        key = self._key(data)
        if numbers is not None and shape_of(indices) == () and key is not None:
            return data[(*key, numbers[0])] if key else data[numbers[0]]
        run = run_of(numbers or (), shape_of(data), self.axis)
        if run is not None and key is not None and len(indices.shape) == 1:
            return data[(*key, run)]
        if self.axis == 0:
            return ops.take(data, indices)
        return ops.take(data, indices, axis=self.axis)

    def layer(self, data: Type, indices: Type) -> Layer | None:
        table = data.known
        if table is None or table.ndim != 2 or not is_float(data.dtype):
            return None
        # A gather on a computed table is no embedding.
        if self.axis != 0 or indices.known is not None:
            return None
        return Layer("Embedding", table.shape, {}, {"weight": 0}, data=(1,))

    def _key(self, data: Value) -> tuple[slice, ...] | None:
        """Return the full slices before the axis, None if their number is unknown."""
        rank = shape_of(data)
        if self.axis < 0 and rank is None:
            return None
        axis = self.axis if self.axis >= 0 or rank is None else self.axis + len(rank)
        return (slice(None),) * axis


def check_integers(indices: Type) -> None:
    """Check that ``indices`` are integers.

    Raises:
        InvalidOperand: they are not.
    """
    if not dtypes.is_integer(indices.dtype):
        raise InvalidOperand(f"expected integer indices, got {indices.name}")


@operator
class GatherElements(Op, onnx="GatherElements", versions=(11, 13)):
    axis: int = 0

    def infer(self, data: Type, indices: Type) -> Type:
        check_integers(indices)
        return data.with_shape(indices.shape)

    def lower(self, data: Value, indices: Value) -> Value:
        if self.axis == 0:
            return ops.gather_elements(data, indices)
        return ops.gather_elements(data, indices, axis=self.axis)


@operator
class GatherND(Op, onnx="GatherND", versions=(11, 12, 13)):
    batch_dims: int = 0

    def infer(self, data: Type, indices: Type) -> Type:
        check_integers(indices)
        if data.shape is None or indices.shape is None or not indices.shape:
            return data.with_shape(None)
        depth = indices.dims[-1]
        if not isinstance(depth, int):
            return data.with_shape(None)
        if self.batch_dims + depth > data.rank:
            raise InvalidOperand(
                f"expected indices of at most {data.rank - self.batch_dims} axes, "
                f"got {indices.name}"
            )
        if any(map(are_unequal_numbers, data.dims, indices.dims[: self.batch_dims])):
            raise InvalidOperand(
                f"expected {self.batch_dims} equal extents first, got {data.name} "
                f"and {indices.name}"
            )
        rest = data.dims[self.batch_dims + depth :]
        return data.with_shape((*indices.dims[:-1], *rest))

    def lower(self, data: Value, indices: Value) -> Value:
        if self.batch_dims == 0:
            return ops.gather_nd(data, indices)
        return ops.gather_nd(data, indices, batch_dims=self.batch_dims)


Cut = tuple[int, Dim, Dim, int]  # axis, start, end, step


@operator
class Slice(Op, onnx="Slice", versions=(1, 10, 11, 13)):
    def infer(
        self,
        data: Type,
        starts: Type,
        ends: Type,
        axes: Type | None = None,
        steps: Type | None = None,
    ) -> Type:
        if data.shape is None:
            return data.with_shape(None)
        dims = list(data.dims)
        where = _axes(data, starts, axes)
        if where is None:
            return data.with_shape(unnamed_dims(data.rank))
        bounds = [known_dims(t) or (None,) * len(where) for t in (starts, ends)]
        by = known_ints(steps) or ((1 if steps is None else None),) * len(where)
        for axis, start, end, step in zip(where, *bounds, by, strict=True):
            dims[axis] = span(dims[axis], start, end, step)
        return data.with_shape(dims)

    def lower(
        self,
        data: Value,
        starts: Value,
        ends: Value,
        axes: Value = None,
        steps: Value = None,
    ) -> Value:
        cuts = _cuts(data, (starts, ends, axes, steps))
        if cuts is not None:
            return data[_key(cuts)]
        if steps is not None:
            return ops.slice(data, starts, ends, axes, steps)
        if axes is not None:
            return ops.slice(data, starts, ends, axes)
        return ops.slice(data, starts, ends)


def _axes(data: Type, starts: Type, axes: Type | None) -> tuple[int, ...] | None:
    """Return the sliced axes, None if they are unknown."""
    if axes is None:
        try:
            return tuple(range(length(starts)))
        except Undecided:
            return None
    numbers = known_ints(axes)
    return None if numbers is None else data.axes(numbers)


def _cuts(data: Value, bounds: tuple[Value, ...]) -> list[Cut] | None:
    """Return the known slices, None if a Python key cannot express them."""
    starts, ends = (dims_of(bound) for bound in bounds[:2])
    axes, steps = (ints_of(bound) for bound in bounds[2:])
    if starts is None or ends is None or any(map(is_unnamed, starts + ends)):
        return None
    for numbers, bound in ((axes, bounds[2]), (steps, bounds[3])):
        if numbers is None and bound is not None:
            return None
    where = tuple(range(len(starts))) if axes is None else axes
    if any(axis < 0 for axis in where):
        extents = shape_of(data)
        if extents is None:
            return None
        where = tuple(axis % len(extents) for axis in where)
    by = (1,) * len(starts) if steps is None else steps
    cuts = list(zip(where, starts, ends, by, strict=True))
    return None if any(_clamps_start(data, cut) for cut in cuts) else cuts


def _clamps_start(data: Value, cut: Cut) -> bool:
    """Return whether a negative step starts before element 0: Python reads nothing."""
    axis, start, _, step = cut
    if step > 0 or not isinstance(start, int) or start >= -1:
        return False
    extents = shape_of(data)
    return (
        extents is None or not isinstance(extents[axis], int) or start < -extents[axis]
    )


def _key(cuts: list[Cut]) -> slice | tuple[slice, ...]:
    """Return the key for square brackets, without bounds at the border."""
    key = [slice(None)] * (max((axis for axis, *_ in cuts), default=0) + 1)
    for axis, start, end, step in cuts:
        first = None if start == (0 if step > 0 else -1) else start
        last: Dim | None = end
        if isinstance(start, int) and abs(start) >= FAR and (start < 0) == (step > 0):
            first = None
        if isinstance(end, int) and abs(end) >= FAR and (end > 0) == (step > 0):
            last = None
        key[axis] = slice(first, last, None if step == 1 else step)
    return key[0] if len(key) == 1 else tuple(key)


@Slice.upgrade(1)
def bounds_attributes(draft: Draft) -> Draft:
    """Upgrade: before 10, the bounds were attributes."""
    draft = draft.attr_to_input("starts", 1).attr_to_input("ends", 2)
    return draft.attr_to_input("axes", 3)


@operator
class Compress(Op, onnx="Compress", versions=(9, 11, 28)):
    axis: int | None = None

    def infer(self, x: Type, condition: Type) -> Type:
        if condition.dtype != dtypes.bool_:
            raise InvalidOperand(f"expected a bool condition, got {condition.name}")
        if condition.shape is not None and condition.rank != 1:
            raise InvalidOperand(
                f"expected a condition of rank 1, got {condition.name}"
            )
        if self.axis is None:
            return x.with_shape(unnamed_dims(1))
        (axis,) = x.axes(self.axis)
        count: Dim = (
            unnamed() if condition.known is None else int(condition.known.sum())
        )
        return x.with_shape([count if a == axis else d for a, d in enumerate(x.dims)])

    def lower(self, x: Value, condition: Value) -> Value:
        if self.axis is None:
            return ops.compress(x, condition)
        return ops.compress(x, condition, axis=self.axis)


@operator
class NonZero(Op, onnx="NonZero", versions=(9, 13)):
    def infer(self, x: Type) -> Type:
        rank: Dim = unnamed() if x.shape is None else max(x.rank, 1)
        return Type(int64, (rank, unnamed()))

    def lower(self, x: Value) -> Value:
        return ops.nonzero(x)


@operator
class OneHot(Op, onnx="OneHot", versions=(9, 11, 28)):
    axis: int = -1

    def infer(self, indices: Type, depth: Type, values: Type) -> Type:
        if indices.shape is None:
            return Type(values.dtype, None)
        rank = indices.rank + 1
        (axis,) = Type(values.dtype, (1,) * rank).axes(self.axis)
        numbers = known_dims(depth)
        extent = unnamed() if numbers is None else numbers[0]
        dims = list(indices.dims)
        dims.insert(axis, extent)
        return Type(values.dtype, tuple(dims))

    def lower(self, indices: Value, depth: Value, values: Value) -> Value:
        numbers = ints_of(depth)
        extent = depth if numbers is None else numbers[0]
        if self.axis == -1:
            return ops.one_hot(indices, extent, values)
        return ops.one_hot(indices, extent, values, axis=self.axis)


def check_block(size: int) -> None:
    """Check that a block of this size is not empty.

    Raises:
        InvalidOperand: it has none.
    """
    if size < 1:
        raise InvalidOperand(f"expected a blocksize of 1 or more, got {size}")


@operator
class DepthToSpace(Op, onnx="DepthToSpace", versions=(1, 11, 13, 28)):
    blocksize: int
    mode: Literal["DCR", "CRD"] = "DCR"

    def __post_init__(self) -> None:
        check_mode(self.mode)
        check_block(self.blocksize)

    def infer(self, x: Type) -> Type:
        n, channels, height, width = image(x)
        b = self.blocksize
        if isinstance(channels, int) and channels % b**2:
            raise InvalidOperand(f"expected channels divisible by {b**2}, got {x.name}")
        return x.with_shape((n, channels // b**2, height * b, width * b))

    def lower(self, x: Value) -> Value:
        if self.mode == "DCR":
            return ops.depth_to_space(x, blocksize=self.blocksize)
        return ops.depth_to_space(x, blocksize=self.blocksize, mode=self.mode)


@operator
class SpaceToDepth(Op, onnx="SpaceToDepth", versions=(1, 13, 28)):
    blocksize: int
    mode: Literal["DCR", "CRD"] = "DCR"

    def __post_init__(self) -> None:
        check_mode(self.mode)
        check_block(self.blocksize)

    def infer(self, x: Type) -> Type:
        n, channels, height, width = image(x)
        b = self.blocksize
        return x.with_shape((n, channels * b**2, height // b, width // b))

    def lower(self, x: Value) -> Value:
        if self.mode == "DCR":
            return ops.space_to_depth(x, blocksize=self.blocksize)
        return ops.space_to_depth(x, blocksize=self.blocksize, mode=self.mode)


def check_mode(mode: str) -> None:
    """Check that ``mode`` is valid for ``DepthToSpace``.

    Raises:
        InvalidOperand: it is not.
    """
    if mode not in ("DCR", "CRD"):
        raise InvalidOperand(f"expected mode DCR or CRD, got {mode!r}")


def image(x: Type) -> tuple[Dim, Dim, Dim, Dim]:
    """Return the dimensions of a batch of images.

    Raises:
        InvalidOperand: its rank is not 4.
    """
    if x.shape is None:
        n, channels, height, width = unnamed_dims(4)
        return n, channels, height, width
    if x.rank != 4:
        raise InvalidOperand(f"expected a tensor of rank 4, got {x.name}")
    n, channels, height, width = x.dims
    return n, channels, height, width
