"""Einstein's sums that are products of matrices become such products."""

from dataclasses import replace
from typing import Any, NamedTuple

from burn.ops.matmul import einsum, matmul
from burn.ops.shape import permute
from burn.plan.passes.graph import FLOAT32, Graph, Steps, replaced
from burn.plan.tree import Slot, Step


class _Labels(NamedTuple):
    """The axes of a product: those of both operands and of the result, and the rest."""

    batch: str
    left: str
    right: str
    summed: str


def as_products(steps: Steps, graph: Graph) -> Steps:
    """Products of matrices between views for every ``einsum`` that is one."""
    return replaced(steps, graph, _product)


def _product(step: Step, graph: Graph) -> list[Step] | None:
    """The steps that stand for an ``einsum``, or None."""
    if step.primitive is not einsum or step.dtypes != (FLOAT32,) or len(step.args) != 2:
        return None
    equation, operands = step.args
    if len(operands) != 2 or "." in equation or "->" not in equation:
        return None
    given, result = equation.replace(" ", "").split("->")
    x, y = given.split(",")
    shapes = [graph.known(operand) for operand in operands]
    labels = _labels(x, y, result)
    if labels is None or any(dtype != FLOAT32 for _, dtype in shapes):
        return None
    extents: dict[str, int] = {}
    for names, (shape, _) in zip((x, y), shapes, strict=True):
        assert shape is not None
        for name, extent in zip(names, shape, strict=True):
            if extents.setdefault(name, extent) != extent:
                return None  # one is repeated along it
    return _steps(step, graph, (x, y, result), labels, extents)


def _labels(x: str, y: str, result: str) -> _Labels | None:
    """The axes by their kind, None unless one is summed, and one is in each alone."""
    if any(len(set(names)) != len(names) for names in (x, y, result)):
        return None
    batch = "".join(name for name in x if name in y and name in result)
    summed = "".join(name for name in x if name in y and name not in result)
    left = "".join(name for name in x if name not in y)
    right = "".join(name for name in y if name not in x)
    if len(left) != 1 or len(right) != 1 or len(summed) != 1:
        return None
    if set(result) != set(batch + left + right):
        return None
    # The batch in the order of the result, which then needs no other.
    ordered = "".join(name for name in result if name in batch)
    return _Labels(ordered, left, right, summed)


def _steps(
    step: Step,
    graph: Graph,
    names: tuple[str, str, str],
    labels: _Labels,
    extents: dict[str, int],
) -> list[Step]:
    batch, left, right, summed = labels
    made: list[Step] = []

    def viewed(value: Any, before: str, after: str) -> Any:
        if before == after:
            return value
        axes = tuple(before.index(name) for name in after)
        shape = tuple(extents[name] for name in after)
        made.append(graph.made(permute, (value, axes), shape))
        return Slot(made[-1].outputs[0])

    x = viewed(step.args[1][0], names[0], batch + left + summed)
    y = viewed(step.args[1][1], names[1], batch + summed + right)
    natural = batch + left + right
    if natural == names[2]:
        return [*made, replace(step, primitive=matmul, args=(x, y), static={})]
    shape = tuple(extents[name] for name in natural)
    made.append(graph.made(matmul, (x, y), shape))
    axes = tuple(natural.index(name) for name in names[2])
    product = Slot(made[-1].outputs[0])
    return [*made, replace(step, primitive=permute, args=(product, axes), static={})]
