"""Fusion of elementwise operations into expressions for generated kernels."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from burn.ops.casting import cast
from burn.ops.elements import COPY, Element, Expression, Operand, elements
from burn.plan.passes.describing import element_of
from burn.plan.passes.graph import Graph, Steps, is_same
from burn.plan.plan_ir import Read, Slot, Step, slots_in
from burn.primitive import Primitive
from burn.tensor import Tensor

#: The maximum number of functions in a chain, and of arrays that it reads.
FUNCTIONS, OPERANDS = 64, 12


class Abilities(NamedTuple):
    """The expressions that the kernels of a device can compute.

    ``takes`` returns whether a device supports an expression; ``primitives`` are the
    unary primitives with a formula of the device.
    """

    takes: Callable[[Element], bool]
    primitives: frozenset[Primitive[..., Any]] = frozenset()


class _Whole(NamedTuple):
    """A fused expression, its operands, and the shape of its result.

    ``reads`` counts how often each slot is read.
    """

    element: Element
    args: list[Any]
    shape: tuple[int, ...]
    reads: Counter[int]


def fuse_elementwise(steps: Steps, graph: Graph, abilities: Abilities) -> Steps:
    """Fuse each chain of elementwise operations into one step."""
    fused: list[Step | Read | None] = []
    wholes: dict[int, tuple[int, _Whole]] = {}
    for step in steps:
        whole = _whole(step, graph, abilities) if isinstance(step, Step) else None
        if whole is None or not isinstance(step, Step):
            fused.append(step)
            continue
        while (slot := _next(whole, wholes, graph, abilities)) is not None:
            position, before = wholes.pop(slot)
            whole, fused[position] = _joined(whole, slot, before), None
        wholes[step.outputs[0]] = (len(fused), whole)
        static = {"element": whole.element}
        args = tuple(whole.args)
        fused.append(replace(step, primitive=elements, args=args, static=static))
    return [step for step in fused if step is not None]


def _next(
    whole: _Whole,
    wholes: dict[int, tuple[int, _Whole]],
    graph: Graph,
    abilities: Abilities,
) -> int | None:
    """Return a slot that only ``whole`` reads and that it can absorb, or None."""
    for slot in [arg.place for arg in whole.args if type(arg) is Slot]:
        _, before = wholes.get(slot, (0, None))
        if before is None or before.shape != whole.shape:
            continue
        is_ours = graph.uses[slot] == whole.reads[slot]
        if is_ours and _fits(_joined(whole, slot, before), abilities):
            return slot
    return None


def _whole(step: Step, graph: Graph, abilities: Abilities) -> _Whole | None:
    """Return the expression that a step computes, or None if it is not fused."""
    if len(step.outputs) != 1 or graph.is_folded(step):
        return None
    arrays = [arg for arg in step.args if type(arg) in (Slot, Tensor)]
    forms = [graph.known(arg) for arg in arrays]
    if not arrays or any(shape is None for shape, _ in forms):
        return None
    types: list[Any] = [(shape, np.dtype(dtype)) for shape, dtype in forms]
    numbers = iter(range(len(arrays)))
    given = []
    for arg in step.args:
        is_array = type(arg) in (Slot, Tensor)
        number = next(numbers) if is_array else 0
        given.append(Operand(number, types[number][1]) if is_array else arg)
    described = _own(step, given, types, abilities)
    described = described or element_of(
        step.primitive, tuple(given), step.static, types
    )
    if described is None:
        return None
    element, shape = described
    form = (step.shapes[0], np.dtype(step.dtypes[0]))
    reads = Counter(slots_in(step.args))
    whole = _numbered(_Whole(element, arrays, shape, reads))
    if (shape, element.dtype) != form or not _fits(whole, abilities):
        return None
    return whole


def _own(
    step: Step, given: list[Any], forms: list[Any], abilities: Abilities
) -> tuple[Element, tuple[int, ...]] | None:
    """Return the expression of a cast, or of a primitive that has a formula."""
    operand = given[0]
    if not isinstance(operand, Operand):
        return None
    shape, dtype = forms[operand.number]
    if step.primitive is cast:
        wanted = np.dtype(step.dtypes[0])
        return Element(COPY, (dtype,), wanted, (operand,)), shape
    if len(given) > 1 or step.primitive not in abilities.primitives:
        return None
    numbers = tuple(sorted(step.static.items()))
    return Element(step.primitive, (dtype,), dtype, (operand,), numbers), shape


def _fits(whole: _Whole, abilities: Abilities) -> bool:
    if whole.element.size > FUNCTIONS or len(whole.args) > OPERANDS:
        return False
    return abilities.takes(whole.element)


def _joined(whole: _Whole, slot: int, before: _Whole) -> _Whole:
    """Return ``whole`` with the expression ``before`` substituted for ``slot``."""
    slots = [arg.place if type(arg) is Slot else None for arg in whole.args]
    moved = {n: n + len(whole.args) for n in range(len(before.args))}
    inner = _moved(before.element, moved)
    element = _filled(whole.element, slots.index(slot), inner)
    args = [*whole.args, *before.args]
    return _numbered(_Whole(element, args, whole.shape, whole.reads + before.reads))


def _filled(expression: Any, number: int, inner: Expression) -> Any:
    """Return ``expression`` with ``inner`` substituted for operand ``number``."""
    if isinstance(expression, Operand):
        return inner if expression.number == number else expression
    if not isinstance(expression, Element):
        return expression
    operands = tuple(_filled(o, number, inner) for o in expression.operands)
    return replace(expression, operands=operands)


def _moved(expression: Any, numbers: dict[int, int]) -> Any:
    """Return ``expression`` with its operands renumbered."""
    if isinstance(expression, Operand):
        return replace(expression, number=numbers[expression.number])
    if not isinstance(expression, Element):
        return expression
    operands = tuple(_moved(o, numbers) for o in expression.operands)
    return replace(expression, operands=operands)


def _numbered(whole: _Whole) -> _Whole:
    """Return the expression without duplicate and unused operands."""
    used = sorted(_used(whole.element))
    kept: list[Any] = []
    numbers = {}
    for number in used:
        arg = whole.args[number]
        same = [n for n, other in enumerate(kept) if is_same(other, arg)]
        numbers[number] = same[0] if same else len(kept)
        if not same:
            kept.append(arg)
    return whole._replace(element=_moved(whole.element, numbers), args=kept)


def _used(expression: Expression) -> set[int]:
    """Return the numbers of the operands in ``expression``."""
    if isinstance(expression, Operand):
        return {expression.number}
    if not isinstance(expression, Element):
        return set()
    return set().union(*map(_used, expression.operands))
