"""Lowering of sums of broadcast products to matrix products."""

from math import prod
from typing import Any, NamedTuple

from burn.ops.elementwise import mul
from burn.ops.matmul import matmul
from burn.ops.reduction import sum as sum_
from burn.ops.shape import permute, reshape
from burn.plan.passes.graph import FLOAT32, Graph, pair_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace

#: For smaller matrices the call overhead exceeds the time of the product.
_SMALL = 512


class _Axes(NamedTuple):
    """The axes of a product: shared by both factors, of one factor, and summed."""

    batch: tuple[int, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    summed: int


@pair_rule
def lower_broadcast_sums(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Replace sums over broadcast products by matrix products."""
    if step.primitive is not sum_ or step.dtypes != (FLOAT32,):
        return None
    product = graph.only_use(step.args[0])
    if product is None or product.primitive is not mul or product.dtypes != (FLOAT32,):
        return None
    (whole,) = product.shapes
    factors = [_extents(value, len(whole), graph) for value in product.args]
    summed = _summed_axis(step, len(whole))
    if summed is None or None in factors:
        return None
    first, second = (shape for shape in factors if shape is not None)
    axes = _axes(first, second, summed)
    if axes is None:
        return None
    return product, _steps(step, product, (first, second), axes, graph)


def _extents(value: Any, rank: int, graph: Graph) -> tuple[int, ...] | None:
    """Return the shape of a factor, padded to ``rank`` axes, or None if unknown."""
    shape, dtype = graph.known(value)
    if shape is None or dtype != FLOAT32:
        return None
    return (1,) * (rank - len(shape)) + shape


def _summed_axis(step: Step, rank: int) -> int | None:
    """Return the axis that is summed, or None unless there is exactly one."""
    axis = (*step.args[1:], step.static.get("axis"))[0]
    if isinstance(axis, tuple | list) and len(axis) == 1:
        (axis,) = axis
    return axis % rank if type(axis) is int and rank else None


def _axes(x: tuple[int, ...], y: tuple[int, ...], summed: int) -> _Axes | None:
    """Classify the axes, or return None where a matrix product is not faster."""
    rest = [axis for axis in range(len(x)) if axis != summed and x[axis] * y[axis] > 1]
    left = tuple(axis for axis in rest if y[axis] == 1)
    right = tuple(axis for axis in rest if x[axis] == 1)
    batch = tuple(axis for axis in rest if axis not in left + right)
    if x[summed] != y[summed] or not left + right or 0 in x + y:
        return None
    each = x[summed] * prod(x[a] for a in left) * prod(y[a] for a in right)
    return _Axes(batch, left, right, summed) if each >= _SMALL else None


def _steps(
    step: Step,
    product: Step,
    factors: tuple[tuple[int, ...], tuple[int, ...]],
    axes: _Axes,
    graph: Graph,
) -> list[Step]:
    (batch, left, right, summed), (first, second) = axes, factors
    new_steps: list[Step] = []

    def viewed(value: Any, primitive: Any, how: Any, shape: tuple[int, ...]) -> Any:
        new_steps.append(graph.new_step(primitive, (value, how), shape))
        return Slot(new_steps[-1].outputs[0])

    def matrix(
        value: Any, extents: tuple[int, ...], order: tuple[int, ...], *sides: int
    ) -> Any:
        value = viewed(value, reshape, extents, extents)
        full = (*order, *(a for a in range(len(extents)) if a not in order))
        if full != tuple(range(len(extents))):
            value = viewed(value, permute, full, tuple(extents[a] for a in full))
        shape = (*(extents[a] for a in batch), *sides)
        return viewed(value, reshape, shape, shape)

    rows, columns = (prod(first[a] for a in left), prod(second[a] for a in right))
    inner = first[summed]
    x = matrix(product.args[0], first, (*batch, *left, summed), rows, inner)
    y = matrix(product.args[1], second, (*batch, summed, *right), inner, columns)
    shape = (*(first[a] for a in batch), rows, columns)
    value = viewed(x, matmul, y, shape)
    axes_left = (*batch, *left, *right)
    long = tuple(max(first[a], second[a]) for a in axes_left)
    value = viewed(value, reshape, long, long)
    back = tuple(sorted(range(len(axes_left)), key=lambda axis: axes_left[axis]))
    if back != tuple(range(len(axes_left))):
        value = viewed(value, permute, back, tuple(long[axis] for axis in back))
    (result,) = step.shapes
    args = (value, result)
    return [*new_steps, replace(step, primitive=reshape, args=args, static={})]
