"""Reductions over axes: sums, means, norms and extrema."""

from __future__ import annotations

from typing import Any, Literal

from burn import dtypes, ops
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import Undecided
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.options import non_default
from burn_ir.static import static_ints
from burn_ir.upgrade import Draft

#: The ``axis`` argument of a reduction: all axes, some, or a tensor that is known only
#: at run time.
Axes = Any


@operator
class Reduction:
    """Reductions whose axes are an operand; by default all axes."""

    keepdims: Literal[0, 1] = 1
    noop_with_empty_axes: Literal[0, 1] = 0

    def infer(self, x: Type, axes: Type | None = None) -> Type:
        return x.with_shape(self._shape(x, axes))

    def _shape(self, x: Type, axes: Type | None) -> tuple[Dim, ...] | None:
        if axes is not None and axes.known is None and axes.shape != (0,):
            return self._shape_of_some(x, axes)
        if x.shape is None:
            return None
        numbers = () if axes is None or axes.known is None else axes.known.ravel()
        reduced = x.axes([int(a) for a in numbers])
        if not reduced:
            reduced = () if self.noop_with_empty_axes else tuple(range(x.rank))
        return without(x.shape, reduced, bool(self.keepdims))

    def _shape_of_some(self, x: Type, axes: Type) -> tuple[Dim, ...] | None:
        """Return the result shape for axes that are known only at run time."""
        count = axes.shape[0] if axes.shape else None
        if x.shape is None:
            return None
        if self.keepdims:
            return tuple(unnamed() for _ in x.shape)
        if not isinstance(count, int):
            return None
        return tuple(unnamed() for _ in range(x.rank - count))

    def axes(self, x: Value, axes: Value) -> Axes:
        """Return the ``axis`` argument of the operation."""
        if axes is None:
            return () if self.noop_with_empty_axes else None
        try:
            numbers = static_ints(axes)
        except Undecided:
            count = _count(axes)
            if not isinstance(count, int) and not self.noop_with_empty_axes:
                return ops.axes_or_all(axes, x)
            if count != 0:
                return axes
            numbers = ()
        if numbers:
            return numbers[0] if len(numbers) == 1 else numbers
        return () if self.noop_with_empty_axes else None

    def over(self, x: Value, axes: Value) -> tuple[tuple[Axes, ...], dict[str, bool]]:
        """Return the arguments of a reduction."""
        axis = self.axes(x, axes)
        position = () if axis is None else (axis,)
        return position, {"keepdims": True} if self.keepdims else {}


def _count(axes: Value) -> Dim | None:
    """Return the number of axes in a vector, None if unknown."""
    try:
        return axes.shape[0] if axes.shape else None
    except Undecided:
        return None


def without(
    shape: tuple[Dim, ...], reduced: tuple[int, ...], keepdims: bool
) -> tuple[Dim, ...]:
    """Return ``shape`` with reduced axes removed, or of size 1."""
    if keepdims:
        return tuple(1 if a in reduced else n for a, n in enumerate(shape))
    return tuple(n for a, n in enumerate(shape) if a not in reduced)


@operator
class ReduceSum(Reduction, Op, onnx="ReduceSum", versions=(1, 11, 13)):
    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        return x.sum(*axis, **options)


@operator
class ReduceMean(Reduction, Op, onnx="ReduceMean", versions=(1, 11, 13, 18)):
    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        return x.mean(*axis, **options)

    def stateless_layer(self, x: Type, axes: Type | None = None) -> Layer | None:
        if x.shape is None or not 3 <= x.rank <= 5 or not dtypes.is_float(x.dtype):
            return None
        if axes is None or axes.known is None or axes.known.size == 0:
            return None
        space = tuple(range(2, x.rank))
        if tuple(sorted(x.axes(axes.known.ravel().tolist()))) != space:
            return None
        if self.keepdims:
            return Layer(f"AdaptiveAvgPool{len(space)}d", (1,), {}, {})
        return Layer("GlobalAvgPool", (), {}, {})


@operator
class ReduceMax(Reduction, Op, onnx="ReduceMax", versions=(1, 11, 12, 13, 18, 20)):
    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        return x.max(*axis, **options)


@operator
class ReduceMin(Reduction, Op, onnx="ReduceMin", versions=(1, 11, 12, 13, 18, 20)):
    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        return x.min(*axis, **options)


@operator
class ReduceProd(Reduction, Op, onnx="ReduceProd", versions=(1, 11, 13, 18)):
    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        return ops.prod(x, *axis, **options)


@operator
class ReduceL1(Reduction, Op, onnx="ReduceL1", versions=(1, 11, 13, 18)):
    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        return ops.reduce_l1(x, *axis, **options)


@operator
class ReduceSumSquare(Reduction, Op, onnx="ReduceSumSquare", versions=(1, 11, 13, 18)):
    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        return (x * x).sum(*axis, **options)


class Rooted(Reduction):
    """Reductions that end in a root or logarithm, computed in float64 for integers."""

    def reduced(
        self, x: Value, axis: tuple[Axes, ...], options: dict[str, bool]
    ) -> Value:
        raise NotImplementedError

    def lower(self, x: Value, axes: Value = None) -> Value:
        axis, options = self.over(x, axes)
        if dtypes.is_float(x.dtype):
            return self.reduced(x, axis, options)
        return self.reduced(x.cast(dtypes.float64), axis, options).cast(x.dtype)


@operator
class ReduceL2(Rooted, Op, onnx="ReduceL2", versions=(1, 11, 13, 18)):
    def reduced(
        self, x: Value, axis: tuple[Axes, ...], options: dict[str, bool]
    ) -> Value:
        return ops.reduce_l2(x, *axis, **options)


@operator
class ReduceLogSum(Rooted, Op, onnx="ReduceLogSum", versions=(1, 11, 13, 18, 28)):
    def reduced(
        self, x: Value, axis: tuple[Axes, ...], options: dict[str, bool]
    ) -> Value:
        return ops.log(x.sum(*axis, **options))


@operator
class ReduceLogSumExp(Rooted, Op, onnx="ReduceLogSumExp", versions=(1, 11, 13, 18, 28)):
    def reduced(
        self, x: Value, axis: tuple[Axes, ...], options: dict[str, bool]
    ) -> Value:
        return ops.logsumexp(x, *axis, **options)


def axes_to_input(draft: Draft) -> Draft:
    """Upgrade: the axes were an attribute before they became an operand."""
    return draft.attr_to_input("axes", 1)


ReduceSum.upgrade(1, 11)(axes_to_input)
for _declared in (ReduceMax, ReduceMin):
    _declared.upgrade(1, 11, 12, 13)(axes_to_input)
for _other in (ReduceMean, ReduceProd, ReduceL1, ReduceL2):
    _other.upgrade(1, 11, 13)(axes_to_input)
for _last in (ReduceSumSquare, ReduceLogSum, ReduceLogSumExp):
    _last.upgrade(1, 11, 13)(axes_to_input)


@operator
class Position:
    """Operators that return an index along an axis."""

    axis: int = 0
    keepdims: Literal[0, 1] = 1
    select_last_index: Literal[0, 1] = 0

    def infer(self, x: Type) -> Type:
        if x.shape is None:
            return Type(dtypes.int64, None)
        axes = x.axes(self.axis)
        return Type(dtypes.int64, without(x.shape, axes, bool(self.keepdims)))

    def options(self) -> dict[str, bool]:
        """Return the keyword arguments besides the axis."""
        return non_default(
            keepdims=(bool(self.keepdims), False),
            select_last=(bool(self.select_last_index), False),
        )


@operator
class ArgMax(Position, Op, onnx="ArgMax", versions=(1, 11, 12, 13)):
    def lower(self, x: Value) -> Value:
        return ops.argmax(x, self.axis, **self.options())


@operator
class ArgMin(Position, Op, onnx="ArgMin", versions=(1, 11, 12, 13)):
    def lower(self, x: Value) -> Value:
        return ops.argmin(x, self.axis, **self.options())
