"""Fusion of elementwise operations into expressions for generated kernels."""

from collections import Counter
from collections.abc import Callable
from math import prod
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
#: The maximum number of functions that several consumers compute.
RECOMPUTED = 12


class KernelSupport(NamedTuple):
    """The expressions that the kernels of a device can compute.

    ``takes`` returns whether a device supports an expression; ``primitives`` are those
    with a formula of the device, of operands of one shape and dtype.
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


def fuse_elementwise(
    steps: Steps, graph: Graph, abilities: KernelSupport, *, recomputes: bool = False
) -> Steps:
    """Fuse each chain of elementwise operations into one step.

    With ``recomputes``, a chain is computed again by each of its consumers if all of
    them are elementwise and that reads and writes no more bytes.
    """
    fusion = _Fusion(graph, abilities)
    pairs = [(step, _maybe_expression(step, graph, abilities)) for step in steps]
    if recomputes:
        fusion.allow_recomputing(pairs)
    for step, whole in pairs:
        fusion.add(step, whole)
    return [step for step in fusion.fused if step is not None]


class _Fusion:
    """The steps of a pass so far, with the expressions of those that are fused."""

    def __init__(self, graph: Graph, abilities: KernelSupport) -> None:
        self._graph, self._abilities = graph, abilities
        self.fused: list[Step | Read | None] = []
        self._wholes: dict[int, tuple[int, _FusedExpression]] = {}
        #: How often each slot is read, by steps and by expressions after fusion.
        self._uses = Counter(graph.uses)
        #: How many steps read each slot that only elementwise steps of its shape read.
        self._readers: dict[int, int] = {}

    def allow_recomputing(self, pairs: list[Any]) -> None:
        """Allow several consumers to compute an expression, where all can."""
        reads, readers = Counter[int](), Counter[int]()
        for _, whole in pairs:
            if whole is None:
                continue
            for slot, count in whole.reads.items():
                shape, _ = self._graph.known(Slot(slot))
                reads[slot] += count if shape == whole.shape else 0
                readers[slot] += 1
        self._readers = {
            slot: readers[slot]
            for slot, count in reads.items()
            if count == self._uses[slot]
        }

    def add(self, step: Step | Read, whole: _FusedExpression | None) -> None:
        """Add a step, after it has absorbed what it can."""
        if whole is None or not isinstance(step, Step):
            self.fused.append(step)
            return
        while (slot := self._absorbable_slot(whole)) is not None:
            position, before = self._wholes[slot]
            self._uses[slot] -= whole.reads[slot]
            whole = _absorb(whole, slot, before)
            if self._uses[slot]:
                self._uses.update(before.reads)
            else:
                del self._wholes[slot]
                self.fused[position] = None
        self._wholes[step.outputs[0]] = (len(self.fused), whole)
        static = {"element": whole.element}
        args = tuple(whole.args)
        self.fused.append(replace(step, primitive=elements, args=args, static=static))

    def _absorbable_slot(self, whole: _FusedExpression) -> int | None:
        """Return a slot that only ``whole`` reads, or that it may compute again."""
        for slot in [arg.place for arg in whole.args if type(arg) is Slot]:
            _, before = self._wholes.get(slot, (0, None))
            if before is None or before.shape != whole.shape:
                continue
            is_ours = self._uses[slot] == whole.reads[slot]
            if not is_ours and not self._is_recomputed(slot, before):
                continue
            if _is_within_limits(_absorb(whole, slot, before), self._abilities):
                return slot
        return None

    def _is_recomputed(self, slot: int, before: _FusedExpression) -> bool:
        """Return whether readers of a slot compute it for no more bytes than before.

        Each of them reads the operands then. Without that one step reads these and
        writes the result, which all read.
        """
        if slot not in self._readers or before.element.size > RECOMPUTED:
            return False
        read: int = 0
        for arg in before.args:
            shape, dtype = self._graph.known(arg)
            read += prod(shape or ()) * np.dtype(dtype).itemsize
        written: int = prod(before.shape) * np.dtype(before.element.dtype).itemsize
        count = self._readers[slot]
        return read * (count - 1) <= written * (count + 1)


def _maybe_expression(
    step: Step | Read, graph: Graph, abilities: KernelSupport
) -> _FusedExpression | None:
    return _expression_of(step, graph, abilities) if isinstance(step, Step) else None


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
    if not all(isinstance(operand, Operand) for operand in operands):
        return None
    shape, dtype = forms[0]
    if step.primitive is cast:
        wanted = np.dtype(step.dtypes[0])
        return Element(COPY, (dtype,), wanted, tuple(operands)), shape
    if step.primitive not in abilities.primitives or len(set(forms)) > 1:
        return None
    numbers = tuple(sorted(step.static.items()))
    types = (dtype,) * len(operands)
    return Element(step.primitive, types, dtype, tuple(operands), numbers), shape


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
    # Others may still read the slot, and a later reader of both counts its own reads.
    reads = Counter({place: n for place, n in whole.reads.items() if place != slot})
    return _deduplicate_operands(
        _FusedExpression(element, args, whole.shape, reads + before.reads)
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
