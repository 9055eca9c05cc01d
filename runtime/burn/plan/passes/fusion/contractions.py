"""Lowering of ``einsum`` to views, matrix products, products or sums."""

from typing import Any

from burn.ops.contraction import contracted
from burn.ops.matmul import einsum
from burn.plan.passes.graph import FLOAT32, Graph, step_rule
from burn.plan.plan_ir import Slot, Step
from burn.primitive import Primitive
from burn.structs import replace


@step_rule
def lower_einsum(step: Step, graph: Graph) -> list[Step] | None:
    """Lower each float32 ``einsum`` of one or two operands."""
    if step.primitive is not einsum or step.dtypes != (FLOAT32,):
        return None
    equation, operands = step.args
    forms = [graph.known(operand) for operand in operands]
    if len(operands) > 2 or any(dtype != FLOAT32 for _, dtype in forms):
        return None
    shapes = [shape for shape, _ in forms if shape is not None]
    work = _Steps(graph)
    contracted(work, equation, operands, shapes)
    if not work.steps:
        return None
    return [*work.steps[:-1], replace(work.steps[-1], outputs=step.outputs)]


class _Steps:
    """Builder of a list of steps."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.is_constant = graph.is_constant
        self.steps: list[Step] = []

    def apply(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        shape: tuple[int, ...],
        **static: Any,
    ) -> Slot:
        """Append a step and return the slot of its result."""
        self.steps.append(self._graph.new_step(primitive, args, shape, **static))
        return Slot(self.steps[-1].outputs[0])
