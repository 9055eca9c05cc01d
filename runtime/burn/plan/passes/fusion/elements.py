"""Fusion of elementwise operations into expressions for generated kernels."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burn.ops.casting import cast
from burn.ops.elements import COPY, Element, Expression, Operand, elements
from burn.plan.passes.graph import Graph, Steps, is_same
from burn.plan.passes.symbolic_execution import element_of
from burn.plan.plan_ir import Read, Slot, Step
from burn.primitive import Primitive
from burn.structs import replace
from burn.tensor import Tensor

#: The maximum number of functions in a chain, and of arrays that it reads.
FUNCTIONS, OPERANDS = 64, 12


class KernelSupport(NamedTuple):
    """The expressions that the kernels of a device can compute.

    ``takes`` returns whether a device supports an expression; ``primitives`` are the
    unary primitives with a formula of the device.
    """

    takes: Callable[[Element], bool]
    primitives: frozenset[Primitive[..., Any]] = frozenset()


class _FusedExpression(NamedTuple):
    """A fused expression, its operands, and the shape of its result.

    ``reads`` counts how often each slot is read.
    """

    element: Element
    args: list[Any]
    shape: tuple[int, ...]
    reads: Counter[int]


def fuse_elementwise(steps: Steps, graph: Graph, abilities: KernelSupport) -> Steps:
    """Fuse each chain of elementwise operations into one step."""
    fused: list[Step | Read | None] = []
    wholes: dict[int, tuple[int, _FusedExpression]] = {}
    for step in steps:
        whole = (
            _expression_of(step, graph, abilities) if isinstance(step, Step) else None
        )
        if whole is None or not isinstance(step, Step):
            fused.append(step)
            continue
        while (slot := _absorbable_slot(whole, wholes, graph, abilities)) is not None:
            position, before = wholes.pop(slot)
            whole, fused[position] = _absorb(whole, slot, before), None
        wholes[step.outputs[0]] = (len(fused), whole)
        static = {"element": whole.element}
        args = tuple(whole.args)
        fused.append(replace(step, primitive=elements, args=args, static=static))
    return [step for step in fused if step is not None]


def _absorbable_slot(
    whole: _FusedExpression,
    wholes: dict[int, tuple[int, _FusedExpression]],
    graph: Graph,
    abilities: KernelSupport,
) -> int | None:
    """Return a slot that only ``whole`` reads and that it can absorb, or None."""
    for slot in [arg.place for arg in whole.args if type(arg) is Slot]:
        _, before = wholes.get(slot, (0, None))
        if before is None or before.shape != whole.shape:
            continue
        is_ours = graph.uses[slot] == whole.reads[slot]
        if is_ours and _is_within_limits(_absorb(whole, slot, before), abilities):
            return slot
    return None


def _expression_of(
    step: Step, graph: Graph, abilities: KernelSupport
) -> _FusedExpression | None:
    """Return the expression that a step computes, or None if it is not fused."""
    if len(step.outputs) != 1 or graph.is_folded(step):
        return None
    arrays = [arg for arg in step.args if type(arg) in (Slot, Tensor)]
    forms = [graph.known(arg) for arg in arrays]
    if not arrays or any(shape is None for shape, _ in forms):
        return None
    types: list[Any] = [(shape, np.dtype(dtype)) for shape, dtype in forms]
    numbers = iter(range(len(arrays)))
    operands = []
    for arg in step.args:
        is_array = type(arg) in (Slot, Tensor)
        number = next(numbers) if is_array else 0
        operands.append(Operand(number, types[number][1]) if is_array else arg)
    described = _device_expression(step, operands, types, abilities)
    described = described or element_of(
        step.primitive, tuple(operands), step.static, types
    )
    if described is None:
        return None
    element, shape = described
    form = (step.shapes[0], np.dtype(step.dtypes[0]))
    reads = Counter(step.operand_places)
    whole = _deduplicate_operands(_FusedExpression(element, arrays, shape, reads))
    if (shape, element.dtype) != form or not _is_within_limits(whole, abilities):
        return None
    return whole


def _device_expression(
    step: Step, operands: list[Any], forms: list[Any], abilities: KernelSupport
) -> tuple[Element, tuple[int, ...]] | None:
    """Return the expression of a cast, or of a primitive that has a formula."""
    operand = operands[0]
    if not isinstance(operand, Operand):
        return None
    shape, dtype = forms[operand.number]
    if step.primitive is cast:
        wanted = np.dtype(step.dtypes[0])
        return Element(COPY, (dtype,), wanted, (operand,)), shape
    if len(operands) > 1 or step.primitive not in abilities.primitives:
        return None
    numbers = tuple(sorted(step.static.items()))
    return Element(step.primitive, (dtype,), dtype, (operand,), numbers), shape


def _is_within_limits(whole: _FusedExpression, abilities: KernelSupport) -> bool:
    if whole.element.size > FUNCTIONS or len(whole.args) > OPERANDS:
        return False
    return abilities.takes(whole.element)


def _absorb(
    whole: _FusedExpression, slot: int, before: _FusedExpression
) -> _FusedExpression:
    """Return ``whole`` with the expression ``before`` substituted for ``slot``."""
    slots = [arg.place if type(arg) is Slot else None for arg in whole.args]
    moved = {n: n + len(whole.args) for n in range(len(before.args))}
    inner = _renumber(before.element, moved)
    element = _substitute(whole.element, slots.index(slot), inner)
    args = [*whole.args, *before.args]
    return _deduplicate_operands(
        _FusedExpression(element, args, whole.shape, whole.reads + before.reads)
    )


def _substitute(expression: Any, number: int, inner: Expression) -> Any:
    """Return ``expression`` with ``inner`` substituted for operand ``number``."""
    if isinstance(expression, Operand):
        return inner if expression.number == number else expression
    if not isinstance(expression, Element):
        return expression
    operands = tuple(_substitute(o, number, inner) for o in expression.operands)
    return replace(expression, operands=operands)


def _renumber(expression: Any, numbers: dict[int, int]) -> Any:
    """Return ``expression`` with its operands renumbered."""
    if isinstance(expression, Operand):
        return replace(expression, number=numbers[expression.number])
    if not isinstance(expression, Element):
        return expression
    operands = tuple(_renumber(o, numbers) for o in expression.operands)
    return replace(expression, operands=operands)


def _deduplicate_operands(whole: _FusedExpression) -> _FusedExpression:
    """Return the expression without duplicate and unused operands."""
    used = sorted(_operand_numbers(whole.element))
    operands: list[Any] = []
    numbers = {}
    for number in used:
        arg = whole.args[number]
        same = [n for n, other in enumerate(operands) if is_same(other, arg)]
        numbers[number] = same[0] if same else len(operands)
        if not same:
            operands.append(arg)
    return whole._replace(element=_renumber(whole.element, numbers), args=operands)


def _operand_numbers(expression: Expression) -> set[int]:
    """Return the numbers of the operands in ``expression``."""
    if isinstance(expression, Operand):
        return {expression.number}
    if not isinstance(expression, Element):
        return set()
    return set().union(*map(_operand_numbers, expression.operands))
