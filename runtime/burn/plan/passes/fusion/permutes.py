"""Moving of scales and residual additions before a permutation of axes.

ConvNeXt permutes the result of a channels-last layer, scales it and adds a residual.
Before the permutation, scale and residual are epilogues of the layer.
"""

from typing import Any

from burn.ops.elementwise import add, div, mul, sub
from burn.ops.matmul import linear
from burn.ops.shape import permute, reshape
from burn.ops.support import axes_of
from burn.plan.passes.graph import Graph, pair_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace

_ELEMENTWISE = (add, sub, mul, div)


@pair_rule
def delay_permutes(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Move permutations of layers' results behind elementwise operations."""
    if step.primitive not in _ELEMENTWISE or step.dtypes != (graph.dtype,):
        return None
    for index, value in enumerate(step.args):
        before = graph.only_use(value)
        if before is None or not _is_permuted_layer(before, graph):
            continue
        if (before.shapes, before.dtypes) != (step.shapes, step.dtypes):
            continue
        axes = _axes(before)
        views = _inverse(step.args[1 - index], axes, graph)
        if views is None:
            continue
        operands = [before.args[0], before.args[0]]
        operands[1 - index] = (
            Slot(views[-1].outputs[0]) if views else step.args[1 - index]
        )
        graph.uses.subtract([*step.operand_places, *before.operand_places])
        shape = tuple(step.shapes[0][axes.index(axis)] for axis in range(len(axes)))
        new = graph.new_step(step.primitive, tuple(operands), shape, **step.static)
        args = (Slot(new.outputs[0]), axes)
        graph.uses.update(new.outputs)
        return before, [
            *views,
            new,
            replace(step, primitive=permute, args=args, static={}),
        ]
    return None


def _is_permuted_layer(step: Step, graph: Graph) -> bool:
    """Return whether ``step`` permutes the axes of a layer's result, perhaps scaled."""
    if step.primitive is not permute:
        return False
    maker = graph.only_use(step.args[0])
    return maker is not None and maker.primitive in (linear, *_ELEMENTWISE)


def _axes(step: Step) -> tuple[int, ...]:
    """Return the order of axes of a permutation, none of them negative."""
    rank = len(step.shapes[0])
    axes = (*step.args[1:], *step.static.values(), None)[0]
    return tuple(range(rank))[::-1] if axes is None else axes_of(axes, rank)


def _inverse(other: Any, axes: tuple[int, ...], graph: Graph) -> list[Step] | None:
    """Return the steps that view ``other`` in the order before ``axes``.

    There are none for scalars; the result is None if the shape is not known.
    """
    if type(other) in (int, float):
        return []
    shape, dtype = graph.known(other)
    if shape is None or dtype != graph.dtype:
        return None
    if not shape:
        return []
    views: list[Step] = []
    full = (1,) * (len(axes) - len(shape)) + shape
    if full != shape:
        views.append(graph.new_step(reshape, (other, full), full))
        other = Slot(views[0].outputs[0])
    order = tuple(axes.index(axis) for axis in range(len(axes)))
    extents = tuple(full[axis] for axis in order)
    return [*views, graph.new_step(permute, (other, order), extents)]
