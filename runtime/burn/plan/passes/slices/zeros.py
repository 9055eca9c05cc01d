"""Gradients that are zero except in some rows: those of values that were sliced."""

from typing import Any

from burn.ops.activation import gelu_grad, relu_grad
from burn.ops.broadcast import broadcast_axes, sum_to
from burn.ops.casting import cast
from burn.ops.elementwise import add, div, mul, neg, sub
from burn.ops.indexing import getitem_grad
from burn.ops.layer_norm import layer_norm_grad, rms_norm_grad
from burn.ops.matmul import matmul
from burn.ops.reduction import sum as sum_
from burn.ops.shape import permute, transpose
from burn.ops.softmax import softmax_grad
from burn.ops.support import axes_of
from burn.plan.passes.graph import Graph
from burn.plan.passes.slices.rules import RESHAPES, Needed, needed_rows, permutation
from burn.plan.passes.slices.selection import Selection, selection_of_key
from burn.plan.plan_ir import Slot, Step, slots_in
from burn.primitive import Primitive

#: The rows outside which a value is zero, by its place.
Zeros = dict[int, Selection]

_FIRST = (div, neg, cast, relu_grad, gelu_grad, softmax_grad)
_FIRST_OF_NORMS = (layer_norm_grad, rms_norm_grad)
#: How many of the first operands make the result zero, each by itself.
_FACTORS: dict[Primitive[..., Any], int] = {
    mul: 2,
    matmul: 2,
    **dict.fromkeys((*_FIRST, *_FIRST_OF_NORMS, permute, transpose, *RESHAPES), 1),
}


def nonzero_rows(step: Step, zeros: Zeros, graph: Graph) -> Selection | None:
    """Return the rows outside which the first result of ``step`` is zero, if any."""
    if step.primitive is getitem_grad:
        if slots_in(step.args[1]):
            return None
        return selection_of_key(step.args[1], step.static["shape"])
    if step.primitive in (add, sub):
        rows = _zeros_of(step.args[0], zeros)
        is_sum = rows is not None and _are_needed(step, rows, (0, 1), zeros, graph)
        return rows if is_sum else None
    for number in range(_FACTORS.get(step.primitive, 0)):
        rows = _zeros_of(step.args[number], zeros)
        rows = rows and _in_result(step, number, rows, graph)
        if rows and _are_needed(step, rows, (number,), zeros, graph):
            return rows
    return None


def summed_rows(step: Step, zeros: Zeros, graph: Graph) -> Needed | None:
    """Return the rows of arguments that determine a sum whose other terms are zero."""
    if step.primitive is matmul:
        return _contracted_rows(step, zeros, graph)
    if step.primitive not in (sum_, sum_to):
        return None
    rows, shape = _zeros_of(step.args[0], zeros), graph.known(step.args[0])[0]
    if rows is None or shape is None or slots_in(step.args[1:]):
        return None
    if step.primitive is sum_to:
        axes = broadcast_axes(step.static["shape"], shape)
    else:
        axis = step.args[1] if len(step.args) > 1 else step.static.get("axis")
        axes = axes_of(axis, len(shape))
    is_summed = len(shape) + rows.axis in axes
    return (rows, *(None for _ in step.args[1:])) if is_summed else None


def _contracted_rows(step: Step, zeros: Zeros, graph: Graph) -> Needed | None:
    ranks = [len(graph.known(arg)[0] or ()) for arg in step.args]
    if min(ranks) < 2:
        return None
    left, right = (_zeros_of(arg, zeros) for arg in step.args)
    if left is not None and left.axis == -1:
        return left, left.on(-2)
    if right is not None and right.axis == -2:
        return right.on(-1), right
    return None


def _zeros_of(arg: Any, zeros: Zeros) -> Selection | None:
    return zeros.get(arg.place) if type(arg) is Slot else None


def _in_result(
    step: Step, number: int, rows: Selection, graph: Graph
) -> Selection | None:
    """Return where the rows of an operand are in the result."""
    if step.primitive in (permute, transpose):
        order = permutation(step)
        if order is None:
            return None
        return rows.on(order.index(len(order) + rows.axis) - len(order))
    if step.primitive in RESHAPES:
        shape = graph.known(step.args[0])[0]
        return None if shape is None else rows.reshaped(shape, step.shapes[0])
    if step.primitive is matmul and rows.axis == (-1, -2)[number]:
        return None
    return rows


def _are_needed(
    step: Step, rows: Selection, numbers: tuple[int, ...], zeros: Zeros, graph: Graph
) -> bool:
    """Return whether ``rows`` of the result need the nonzero rows of these operands."""
    needed = needed_rows(step, rows, graph)
    return needed is not None and all(
        needed[number] is not None
        and needed[number] == _zeros_of(step.args[number], zeros)
        for number in numbers
    )
