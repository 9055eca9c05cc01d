"""The backend that traces a function while it runs on a device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from burn.backend.arrays import ArrayBackend
from burn.backend.autodiff import is_in_backward
from burn.backend.base import STRUCTURES, Backend, map_structure
from burn.box import Box, Buffer, reading
from burn.defaults import host
from burn.plan.plan_ir import Event, Guard, Read, Slot, Step
from burn.primitive import Primitive, recording
from burn.tensor import Tensor, innermost

if TYPE_CHECKING:
    from burn.plan.profile import Profiler

#: The maximum number of elements of a guarded value.
MOST = 64


class UnplannableError(Exception):
    """The function does something that a plan cannot record; it runs eagerly."""


class RecordedValue:
    """The data of a recorded tensor: its place, and its value in this run."""

    __slots__ = ("place", "tensor")

    def __init__(self, index: int, tensor: Tensor) -> None:
        self.place, self.tensor = index, tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def dtype(self) -> Any:
        return self.tensor.dtype

    def __dlpack__(self, **options: Any) -> Any:
        raise UnplannableError("memory is handed to another library")

    __dlpack_device__ = __dlpack__


class Recorder(Backend):
    """A backend that runs each call on ``device`` and records the non-constant ones.

    A call is recorded if it depends on an input or on a box. Other calls are constant.
    """

    level = 1.5  # above devices, and below tapes on them

    def __init__(
        self, device: ArrayBackend, profiler: "Profiler | None" = None
    ) -> None:
        self.device, self._profiler = device, profiler
        # Of a function with gradients, forward values are bitwise those of eager calls.
        self._computing = device.one_time_calls()
        self.events: list[Event] = []
        self._values: dict[Box, Tensor] = {}
        self._before: dict[Box, Tensor] = {}
        self.writes: dict[Box, Slot] = {}
        self.count = 0

    def __repr__(self) -> str:
        return repr(self.device)  # that messages name while a plan is recorded

    @contextmanager
    def active(self) -> Iterator[None]:
        """Record all calls and reads in this context."""
        with recording(self), reading(self):
            yield

    def new(self, tensor: Tensor) -> Tensor:
        """Return a recorded tensor in a new slot."""
        self.count += 1
        return Tensor(RecordedValue(self.count - 1, tensor), self)

    def read(self, box: Box) -> Tensor:
        """Return the value of ``box`` as a recorded tensor.

        Raises:
            UnplannableError: the box is not on the device.
        """
        held = box.held()
        current = self._values.get(box)
        if current is None:
            tensor = innermost(held)
            if tensor.backend is not self.device:
                raise UnplannableError(f"{box!r} is on {held.backend}")
            current = self._values[box] = self.new(tensor)
            self.events.append(Read(box, current.data.place, held.backend))
            if held.backend is not self.device:
                self._computing = self.device
        return _on_top(current, held)

    def write(self, box: Box, value: Tensor) -> Tensor:
        """Record that the plan sets ``box`` at its end; return its current value."""
        held, inner = box.held(), innermost(value)
        if inner.backend is not self:
            inner = self._record_constant(self.device.import_tensor(inner))
        self._before.setdefault(box, held)
        if self._profiler is not None:
            self._profiler.save(box, held)
        self._values[box], self.writes[box] = inner, Slot(inner.data.place)
        return cast(Tensor, inner.data.tensor.to(held.backend))

    @contextmanager
    def undone_unless_planned(self) -> Iterator[None]:
        """Restore the boxes if the body raises an exception."""
        planned = False
        try:
            yield
            planned = True
        finally:
            if not planned:
                self.undo()

    def undo(self) -> None:
        """Restore the values that boxes had before the recording."""
        for box, held in self._before.items():
            box.set(held.detach())

    def forget_values(self) -> None:
        """Release the values of boxes, which refer to this recorder: a cycle would keep
        them in memory until the garbage collector runs.
        """
        self._values.clear()

    def stands_for(self, other: Backend) -> bool:
        return other is self or other is self.device

    def _record_constant(self, array: Any) -> Tensor:
        """Return a constant as a recorded tensor."""
        box = Buffer(Tensor(array, self.device))
        return self.read(box)

    def call(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        static: dict[str, Any],
    ) -> Any:
        plain: list[Any] = []
        slots: list[Any] = []
        is_recorded = False
        for arg in args:
            values, slot = self.argument(arg)
            plain.append(values)
            slots.append(slot)
            is_recorded = is_recorded or slot is not values
        if not is_recorded:
            return self._constant(primitive, tuple(plain), static)
        result = self._computing.call(primitive, tuple(plain), static)
        if primitive.host:
            return result
        results = result if type(result) is tuple else (result,)
        first = self.count
        tensors = tuple([self.new(item) for item in results])
        step = Step(
            *(primitive, tuple(slots), static),
            tuple(range(first, self.count)),
            tuple([item.shape for item in results]),
            tuple([item.dtype for item in results]),
            is_in_backward(),
            self._profiler.origin() if self._profiler else None,
        )
        self.events.append(step)
        return tensors if results is result else tensors[0]

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a constant as a recorded tensor."""
        return self._record_constant(self.device.from_numpy(array)).data

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        """Return the value in this run, and record a guard on it.

        Raises:
            UnplannableError: the value is too large for a guard.
        """
        array: np.ndarray[Any, Any] = data.tensor.numpy()
        if array.size > MOST or array.dtype == object:
            raise UnplannableError(
                f"{array.dtype}{list(array.shape)} is read on the host"
            )
        self.events.append(Guard(data.place, array.tobytes()))
        return array

    def argument(self, arg: Any) -> tuple[Any, Any]:
        """Return ``arg`` for the device, and with slots for a step.

        They are the same object if ``arg`` has no recorded value.
        """
        if isinstance(arg, Box):
            arg = self.read(arg)
        elif type(arg) in STRUCTURES:
            return self._structure(arg)
        elif type(arg) is not Tensor:
            return arg, arg
        if arg.backend is self:
            return arg.data.tensor, Slot(arg.data.place)
        if arg.backend is not self.device and arg.backend.level != 0:
            raise UnplannableError(f"a tensor on {arg.backend}")
        return arg, arg

    def _structure(self, arg: Any) -> tuple[Any, Any]:
        """Return :meth:`argument` of a list, tuple or slice, which may be nested."""
        pairs: list[tuple[Any, Any]] = []

        def plain_leaf(leaf: Any) -> Any:
            pairs.append(self.argument(leaf))
            return pairs[-1][0]

        plain = map_structure(plain_leaf, arg)
        if all(values is slot for values, slot in pairs):
            return plain, plain
        slots = iter(pairs)
        return plain, map_structure(lambda _: next(slots)[1], arg)

    def _constant(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        on_device = []
        for arg in args:
            map_structure(
                lambda x: (
                    on_device.append(x)
                    if type(x) is Tensor and x.backend is self.device
                    else None
                ),
                arg,
            )
        return (self.device if on_device else host()).call(primitive, args, static)


def _on_top(inner: Tensor, like: Tensor) -> Tensor:
    """Return ``inner`` wrapped in the backends and tape nodes of ``like``."""
    if type(like.data) is not Tensor:
        return inner
    return Tensor(_on_top(inner, like.data), like.backend, like.node)
