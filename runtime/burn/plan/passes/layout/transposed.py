"""Rewrites of transposed products as products of transposed factors."""

from typing import Any

from burn.ops.matmul import matmul
from burn.ops.shape import transpose
from burn.plan.passes.graph import FLOAT32, Graph, pair_rule, swapped_axes
from burn.plan.plan_ir import Slot, Step, slots_in
from burn.structs import replace


@pair_rule
def transpose_factors(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Replace transposed products by products of the transposed factors where possible.

    An example is the gradient of ``x @ y.mT`` by ``y``. oneDNN reads either layout, but
    writes rows, so a result that is read by columns would be copied.
    """
    product = graph.only_use(step.args[0]) if _is_transpose(step) else None
    if product is None or product.primitive is not matmul:
        return None
    shapes = [graph.known(factor)[0] for factor in product.args]
    ranks = {None if shape is None else len(shape) for shape in shapes}
    before = [_transposed_value(factor, graph) for factor in product.args]
    if product.dtypes != (FLOAT32,) or len(ranks) != 1 or before == [None, None]:
        return None
    views: list[Step] = []
    factors = []
    for factor, source, shape in zip(product.args, before, shapes, strict=True):
        if source is None:
            assert shape is not None
            turned = (*shape[:-2], shape[-1], shape[-2])
            views.append(graph.new_step(transpose, (factor, -2, -1), turned))
            source = Slot(views[-1].outputs[0])
        factors.append(source)
    graph.uses.subtract([*product.operand_places, *product.outputs])
    graph.uses.update(slots_in(factors))
    return product, [*views, replace(step, primitive=matmul, args=(*factors[::-1],))]


def _transposed_value(factor: Any, graph: Graph) -> Any:
    """Return the value that ``factor`` is the transpose of, or None."""
    maker = graph.maker.get(factor.place) if type(factor) is Slot else None
    if isinstance(maker, Step) and _is_transpose(maker):
        return maker.args[0]
    return None


def _is_transpose(step: Step) -> bool:
    """Return whether a step swaps the last two axes of a float value of the plan."""
    if step.primitive is not transpose or type(step.args[0]) is not Slot:
        return False
    rank = len(step.shapes[0])
    return rank > 1 and set(swapped_axes(step)) == {rank - 2, rank - 1}
