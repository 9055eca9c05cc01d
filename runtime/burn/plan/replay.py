"""Replay of unoptimized plans: kernels without dispatch."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from burn.backend.arrays import ArrayBackend, ignoring_errors
from burn.plan.executable import Executable, Plan
from burn.plan.passes.unique_slots import last_slot
from burn.plan.plan_ir import (
    Read,
    Segment,
    Slot,
    StackedResult,
    Step,
    UnforeseenError,
    find_drops,
)
from burn.plan.pytree import mapped
from burn.tensor import Tensor, innermost

Values: TypeAlias = list[Any]


class Replay(Executable):
    """The executable of an unoptimized plan, for any device."""

    def __init__(self, plan: Plan, device: ArrayBackend) -> None:
        self.root, self._device = plan.root, device
        find_drops(plan.root)
        self._bound = BoundSegment(plan.root, device)
        self._count = last_slot(plan.root) + 1
        self._notes: list[str] = []
        if plan.generated:
            self._notes.append(f"generated kernels are not used: it is on {device}")
        if plan.lowering:
            self._notes.append(f"{plan.precision} is not used: it is on {device}")

    @property
    def notes(self) -> list[str]:
        return self._notes

    def run(self, inputs: list[Any]) -> Any:
        return self._bound.run(inputs + [None] * (self._count - len(inputs)))


class BoundSegment:
    """A segment bound to a device, with its successors."""

    def __init__(self, segment: Segment, device: ArrayBackend) -> None:
        self._calls = tuple(
            bound_step(step, drops, device)
            for step, drops in zip(segment.steps, segment.drops, strict=True)
        )
        self._guard = segment.guard
        self._children = {
            value: BoundSegment(child, device)
            for value, child in segment.children.items()
        }
        self._result, self._device = segment.result, device
        self._writes = segment.writes

    def run(self, values: Values) -> Any:
        """Return the result, from ``values`` with the inputs in the first places.

        Raises:
            UnforeseenError: a guard value, a shape or a box matches no recording.
        """
        with ignoring_errors():
            bound = self
            while True:
                for call in bound._calls:
                    call(values)
                if bound._guard is None:
                    result = fill_result(bound._result, values, bound._device)
                    for box, slot in bound._writes.items():
                        box.set(Tensor(values[slot.place], bound._device))
                    return result
                seen = values[bound._guard].tobytes()
                if seen not in bound._children:
                    raise UnforeseenError(f"{values[bound._guard]} was read")
                bound = bound._children[seen]


def bound_step(
    step: Step | Read,
    drops: tuple[int, ...],
    device: ArrayBackend,
    kernel: Callable[..., Any] | None = None,
) -> Callable[[Values], None]:
    """Return ``step`` as a function of a plan's values, by ``kernel`` if given."""
    if isinstance(step, Read):
        return _box_reader(step)
    kernel = kernel or step.primitive.kernel_for(device)
    return _primitive_call(step, drops, device, kernel)


def _box_reader(step: Read) -> Callable[[Values], None]:
    def read(values: Values) -> None:
        values[step.place] = innermost(step.held()).data

    return read


def _primitive_call(
    step: Step, drops: tuple[int, ...], device: ArrayBackend, kernel: Callable[..., Any]
) -> Callable[[Values], None]:
    static = step.static
    template = [None if type(a) is Slot else constant(a, device) for a in step.args]
    direct = [(i, a.place) for i, a in enumerate(step.args) if type(a) is Slot]
    nested = [i for i, arg in enumerate(template) if has_slots(arg)]
    results = tuple(zip(step.outputs, step.shapes, step.dtypes, strict=True))
    several = step.primitive.outputs != 1

    def call(values: Values) -> None:
        args = template.copy()
        for i, index in direct:
            args[i] = values[index]
        for i in nested:
            args[i] = arguments(template[i], values)
        outputs = kernel(*args, **static)
        for (index, shape, dtype), array in zip(
            results, outputs if several else (outputs,), strict=True
        ):
            array = device.as_data(array)
            if array.shape != shape or array.dtype != dtype:
                raise UnforeseenError(f"{step.primitive.name} gives {array.shape}")
            values[index] = array
        for index in drops:
            values[index] = None

    return call


def constant(arg: Any, device: ArrayBackend) -> Any:
    """Return ``arg`` with arrays instead of constant tensors; slots are unchanged."""
    if type(arg) is Tensor:
        return device.import_tensor(arg)
    if type(arg) is list or type(arg) is tuple:
        return type(arg)(constant(item, device) for item in arg)
    if type(arg) is slice:
        parts = (arg.start, arg.stop, arg.step)
        return slice(*(p.item() if type(p) is Tensor else p for p in parts))
    return arg


def has_slots(arg: Any) -> bool:
    if type(arg) is list or type(arg) is tuple:
        return any(map(has_slots, arg))
    if type(arg) is slice:
        return has_slots((arg.start, arg.stop, arg.step))
    return type(arg) is Slot


def has_bounds(arg: Any) -> bool:
    """Return whether ``arg`` has a slice with a computed bound."""
    if type(arg) is list or type(arg) is tuple:
        return any(map(has_bounds, arg))
    return type(arg) is slice and has_slots(arg)


def arguments(arg: Any, values: Values | dict[int, Any]) -> Any:
    """Return ``arg`` with arrays in place of slots, and integers as slice bounds."""
    kind = type(arg)
    if kind is Slot:
        return values[arg.place]
    if kind is list or kind is tuple:
        return kind([arguments(item, values) for item in arg])
    if kind is slice:
        parts = (arg.start, arg.stop, arg.step)
        return slice(*(values[p.place].item() if type(p) is Slot else p for p in parts))
    return arg


def fill_result(result: Any, values: Values, device: ArrayBackend) -> Any:
    """Return the result of the function, with tensors in place of slots."""
    return mapped(partial(_fill_leaf, values=values, device=device), result)


def _fill_leaf(leaf: Any, values: Values, device: ArrayBackend) -> Any:
    # Not a recursive closure, whose reference cycle would keep ``values`` alive.
    if type(leaf) is StackedResult:
        return Tensor(_fill_leaf(leaf.value, values, device), leaf.backend)
    return Tensor(values[leaf.place], device) if type(leaf) is Slot else leaf
