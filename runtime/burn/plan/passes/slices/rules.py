"""Which rows of its operands a step needs for some rows of its result."""

from collections.abc import Callable
from typing import Any, TypeAlias

from burn.ops.activation import gelu, gelu_grad
from burn.ops.attention import masked_softmax
from burn.ops.casting import cast
from burn.ops.elements import Operand
from burn.ops.layer_norm import (
    feature_axes,
    layer_norm,
    layer_norm_grad,
    rms_norm,
    rms_norm_grad,
)
from burn.ops.matmul import linear, matmul
from burn.ops.shape import flatten, permute, reshape, squeeze, transpose, unsqueeze
from burn.ops.softmax import log_softmax, softmax, softmax_grad
from burn.ops.support import axes_of
from burn.plan.passes.graph import Graph, swapped_axes
from burn.plan.passes.slices.selection import Selection
from burn.plan.passes.symbolic_execution import element_of
from burn.plan.plan_ir import Slot, Step, slots_in
from burn.primitive import Primitive
from burn.tensor import Tensor

#: For each argument of a step the rows that are needed, or None for all.
Needed: TypeAlias = tuple[Selection | None, ...]
Rule: TypeAlias = Callable[[Step, Selection, Graph], Needed | None]

#: Views, which are reshapes to the shape of the selected rows.
RESHAPES = (reshape, flatten, squeeze, unsqueeze)
#: Functions of elements whose kernels :func:`element_of` does not describe.
_ELEMENTWISE = (gelu, gelu_grad, cast)
_SOFTMAXES = (softmax, softmax_grad, masked_softmax, log_softmax)
_NORMS = (layer_norm, rms_norm)
_NORM_GRADIENTS = (layer_norm_grad, rms_norm_grad)


def needed_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    """Return the rows of each argument that determine ``rows`` of the first result.

    None if the other rows contribute, or if this is not known.
    """
    rule = _RULES.get(step.primitive, _elementwise_rows)
    return rule(step, rows, graph)


def _elementwise_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    if step.primitive not in _ELEMENTWISE and not _is_elementwise(step, graph):
        return None
    return _broadcast_rows(step, rows, graph)


def _is_elementwise(step: Step, graph: Graph) -> bool:
    args: list[Any] = []
    forms: list[tuple[tuple[int, ...], Any]] = []
    for arg in step.args:
        if type(arg) not in (Slot, Tensor):
            args.append(arg)
            continue
        shape, dtype = graph.known(arg)
        if shape is None:
            return False
        args.append(Operand(len(forms), dtype))
        forms.append((shape, dtype))
    return element_of(step.primitive, tuple(args), step.static, forms) is not None


def _broadcast_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    """Return ``rows`` of each operand that is not broadcast along their axis."""
    extent, needed = step.shapes[0][rows.axis], []
    for arg in step.args:
        shape = graph.known(arg)[0]
        if shape is None and slots_in(arg):
            return None
        has_rows = shape is not None and len(shape) >= -rows.axis
        is_same = has_rows and shape is not None and shape[rows.axis] == extent
        needed.append(rows if is_same else None)
    return tuple(needed)


def _matmul_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    shapes = [graph.known(arg)[0] for arg in step.args]
    if any(shape is None or len(shape) < 2 for shape in shapes):
        return None
    if rows.axis == -1:
        return None, rows
    return (rows, None) if rows.axis == -2 else _broadcast_rows(step, rows, graph)


def _linear_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    return None if rows.axis == -1 else (rows, *(None for _ in step.args[1:]))


def _softmax_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    rank = len(step.shapes[0])
    if any(type(arg) is not Slot for arg in step.args):
        return None
    axes = axes_of(step.static.get("axis", -1), rank)
    return None if rank + rows.axis in axes else tuple(rows for _ in step.args)


def _norm_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    rank = len(step.shapes[0])
    if rank + rows.axis in feature_axes(step.static.get("axis", -1), rank):
        return None
    return _broadcast_rows(step, rows, graph)


def _norm_gradient_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    """Return the rows of operands if the other gradients are sums over all rows."""
    needed = _norm_rows(step, rows, graph)
    if needed is None or any(each is not None for each in needed[2:]):
        return None
    return needed


def _permuted_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    order = permutation(step)
    if order is None:
        return None
    rank = len(order)
    return (rows.on(order[rows.axis] - rank), *(None for _ in step.args[1:]))


def _reshaped_rows(step: Step, rows: Selection, graph: Graph) -> Needed | None:
    shape = graph.known(step.args[0])[0]
    if shape is None or slots_in(step.args[1:]):
        return None
    before = rows.reshaped(step.shapes[0], shape)
    return None if before is None else (before, *(None for _ in step.args[1:]))


def permutation(step: Step) -> tuple[int, ...] | None:
    """Return the axes of the operand in the order of the result, if they are known."""
    rank = len(step.shapes[0])
    if slots_in(step.args[1:]):
        return None
    if step.primitive is permute:
        axes = step.static.get("axes", step.args[1] if len(step.args) > 1 else None)
        return tuple(reversed(range(rank))) if axes is None else axes_of(axes, rank)
    first, second = swapped_axes(step)
    order = list(range(rank))
    order[first], order[second] = second, first
    return tuple(order)


_RULES: dict[Primitive[..., Any], Rule] = {
    matmul: _matmul_rows,
    linear: _linear_rows,
    transpose: _permuted_rows,
    permute: _permuted_rows,
    **dict.fromkeys(RESHAPES, _reshaped_rows),
    **dict.fromkeys(_SOFTMAXES, _softmax_rows),
    **dict.fromkeys(_NORMS, _norm_rows),
    **dict.fromkeys(_NORM_GRADIENTS, _norm_gradient_rows),
}
