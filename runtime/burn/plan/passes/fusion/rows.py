"""Sparse updates: gradients of lookups are added to the selected rows only."""

from typing import Any

from burn.ops.fused import chained, rows_added
from burn.ops.indexing import take_grad
from burn.plan.passes.graph import FLOAT32, Graph, pair_rule
from burn.plan.plan_ir import Slot, Step


@pair_rule
def update_selected_rows(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Replace additions of dense lookup gradients by updates of the selected rows."""
    if step.primitive is not chained:
        return None
    before = graph.only_use(step.args[0])
    if before is None or not _is_of_rows(before, graph):
        return None
    *factors, (name, position) = step.static["chain"]
    if name != "add" or graph.known(step.args[1 + position])[0] != step.shapes[0]:
        return None
    operands: list[Any] = [step.args[1 + p] for _, p in factors if p is not None]
    if any(n != "mul" or p is None for n, p in factors):
        return None
    if any(graph.known(operand)[0] != () for operand in operands):
        return None
    rows, indices = before.args[:2]
    shape, _ = graph.known(rows)
    assert shape is not None
    new: list[Step] = []
    if factors:
        chain = tuple(("mul", number) for number in range(len(operands)))
        new.append(graph.new_step(chained, (rows, *operands), shape, chain=chain))
        rows = Slot(new[-1].outputs[0])
    args = (step.args[1 + position], rows, indices)
    whole = Step(rows_added, args, {}, step.outputs, step.shapes, step.dtypes)
    return before, [*new, whole]


def _is_of_rows(step: Step, graph: Graph) -> bool:
    if step.primitive is not take_grad or step.dtypes != (FLOAT32,):
        return False
    axis = (*step.args[2:], step.static.get("axis", 0))[0]
    return axis in (0, -len(step.shapes[0])) and graph.known(step.args[0])[1] == FLOAT32
