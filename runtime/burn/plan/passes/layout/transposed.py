"""Transposed products become products of the transposed factors, if one is already."""

from dataclasses import replace
from typing import Any

from burn.ops.matmul import matmul
from burn.ops.shape import transpose
from burn.plan.passes.graph import FLOAT32, Graph, Steps, joined, swapped_axes
from burn.plan.plan_ir import Slot, Step, slots_in


def with_transposed_factors(steps: Steps, graph: Graph) -> Steps:
    """Steps in which no product is transposed that may be computed so.

    The gradient of ``x @ y.mT`` by ``y`` is such a one. oneDNN reads matrices either
    way, but writes rows, which would be copied where the result is read by columns.
    """
    return joined(steps, graph, _turned)


def _turned(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """The product before a transpose, and what stands for both, or None."""
    product = graph.only_use(step.args[0]) if _is_transpose(step) else None
    if product is None or product.primitive is not matmul:
        return None
    shapes = [graph.known(factor)[0] for factor in product.args]
    ranks = {None if shape is None else len(shape) for shape in shapes}
    before = [_before(factor, graph) for factor in product.args]
    if product.dtypes != (FLOAT32,) or len(ranks) != 1 or before == [None, None]:
        return None
    views: list[Step] = []
    factors = []
    for factor, source, shape in zip(product.args, before, shapes, strict=True):
        if source is None:
            assert shape is not None
            turned = (*shape[:-2], shape[-1], shape[-2])
            views.append(graph.made(transpose, (factor, -2, -1), turned))
            source = Slot(views[-1].outputs[0])
        factors.append(source)
    graph.uses.subtract([*slots_in(product.args), *product.outputs])
    graph.uses.update(slots_in(factors))
    return product, [*views, replace(step, primitive=matmul, args=(*factors[::-1],))]


def _before(factor: Any, graph: Graph) -> Any:
    """What ``factor`` is the transpose of, None if it is of nothing."""
    maker = graph.maker.get(factor.place) if type(factor) is Slot else None
    if isinstance(maker, Step) and _is_transpose(maker):
        return maker.args[0]
    return None


def _is_transpose(step: Step) -> bool:
    """Whether a step swaps the last two axes, of numbers that a plan made."""
    if step.primitive is not transpose or type(step.args[0]) is not Slot:
        return False
    rank = len(step.shapes[0])
    return rank > 1 and set(swapped_axes(step)) == {rank - 2, rank - 1}
