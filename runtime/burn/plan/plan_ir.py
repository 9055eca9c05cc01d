"""The plan IR: steps in order, with a branch at each value that the host reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias

from burn.backend.base import Backend
from burn.box import Box
from burn.primitive import Primitive
from burn.structs import FrozenStruct, Struct, replace
from burn.tensor import Tensor


class Slot:
    """A reference to a value of a plan among the arguments of a step."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place

    def __eq__(self, other: object) -> bool:
        return type(other) is Slot and self.place == other.place

    def __hash__(self) -> int:
        return hash(self.place)

    def __repr__(self) -> str:
        return f"Slot({self.place})"


class Origin(FrozenStruct):
    """The module path and the source line that called a primitive."""

    module: str = ""
    line: str = ""


class Step(Struct):
    """A call of a primitive, with slots instead of tensors in ``args``.

    ``outputs`` are the places of the results, ``shapes`` and ``dtypes`` those at
    recording time. ``is_backward`` marks a call that Autodiff made to compute
    gradients. ``origin`` is set if the plan is profiled. Passes need not preserve these
    two.
    """

    primitive: Primitive[..., Any]
    args: tuple[Any, ...]
    static: dict[str, Any]
    outputs: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    is_backward: bool
    origin: Origin | None

    # Recordings and passes create thousands, so it has a constructor of its own.
    def __init__(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        static: dict[str, Any],
        outputs: tuple[int, ...],
        shapes: tuple[tuple[int, ...], ...],
        dtypes: tuple[Any, ...],
        is_backward: bool = False,
        origin: Origin | None = None,
    ) -> None:
        self.primitive, self.args, self.static = primitive, args, static
        self.outputs, self.shapes, self.dtypes = outputs, shapes, dtypes
        self.is_backward, self.origin = is_backward, origin

    def __repr__(self) -> str:
        return f"{self.primitive.name}{self.args}"

    @cached_property
    def operand_places(self) -> tuple[int, ...]:
        """The places of the values among the arguments, which many passes count."""
        return tuple(slots_in(self.args))

    def same_as(self, other: Step | Read) -> bool:
        """Return whether another recording of the function has the same step here."""
        return (
            isinstance(other, Step)
            and self.primitive is other.primitive
            and self.outputs == other.outputs
            and self.shapes == other.shapes
            and _are_equal(self.args, other.args)
            and _are_equal(self.static, other.static)
        )


class Read(Struct):
    """A step that reads a box into a place; the box must stay on the same backend."""

    box: Box
    place: int
    backend: Backend

    def __repr__(self) -> str:
        return f"{self.box!r} in {self.place}"

    @property
    def outputs(self) -> tuple[int, ...]:
        return (self.place,)

    def same_as(self, other: Step | Read) -> bool:
        """Return whether another recording has the same read here."""
        return (
            isinstance(other, Read)
            and self.box is other.box
            and self.place == other.place
            and self.backend is other.backend
        )

    def held(self) -> Tensor:
        """Return the value of the box.

        Raises:
            UnforeseenError: the box moved to another backend.
        """
        held = self.box.held()
        if held.backend is not self.backend:
            raise UnforeseenError(f"{self.box!r} is on {held.backend}")
        return held


class Guard(Struct):
    """A value that the function read on the host, and on whose bytes the trace
    depends.
    """

    place: int
    value: bytes


class Segment(Struct):
    """The steps up to the next guard, or up to the result.

    ``drops`` are the places that are dead after each step. With a ``guard`` the plan
    continues with the child for the value; otherwise ``result`` is the result and
    ``writes`` are the slots of the final values of boxes. The last ``late`` steps only
    compute values for ``writes``, and cannot fail. Boxes that are ``varying`` are set
    by others between runs, so they are not constants.
    """

    steps: list[Step | Read]
    drops: list[tuple[int, ...]]
    guard: int | None
    children: dict[bytes, Segment]
    result: Any
    writes: dict[Box, Slot]
    late: int
    varying: frozenset[Box]

    def __init__(
        self,
        steps: list[Step | Read] | None = None,
        *,
        guard: int | None = None,
        children: dict[bytes, Segment] | None = None,
        result: Any = None,
        writes: dict[Box, Slot] | None = None,
        varying: frozenset[Box] = frozenset(),
    ) -> None:
        self.steps = [] if steps is None else steps
        self.drops, self.late, self.varying = [], 0, varying
        self.guard = guard
        self.children = {} if children is None else children
        self.result = result
        self.writes = {} if writes is None else writes

    def snapshot(self) -> Segment:
        """Return a copy that later recordings leave as it is."""
        children = {value: child.snapshot() for value, child in self.children.items()}
        return replace(
            self, steps=list(self.steps), children=children, writes=dict(self.writes)
        )

    def in_time(self) -> list[tuple[Step | Read, tuple[int, ...]]]:
        """Return the steps that are not late, with their drops."""
        pairs = list(zip(self.steps, self.drops, strict=True))
        return pairs[: len(pairs) - self.late]

    def late_ones(self) -> list[tuple[Step, tuple[int, ...]]]:
        """Return the late steps, with their drops."""
        pairs = list(zip(self.steps, self.drops, strict=True))[-self.late :]
        return [(s, drops) for s, drops in pairs if self.late and isinstance(s, Step)]

    @property
    def ends(self) -> list[Any]:
        """The result, and the slots of the written values."""
        return [self.result, list(self.writes.values())]


class StackedResult:
    """A result on a backend that is stacked on the backend of its value."""

    __slots__ = ("backend", "value")

    def __init__(self, value: Any, backend: Backend) -> None:
        self.value, self.backend = value, backend


Event: TypeAlias = Step | Read | Guard


class UnforeseenError(Exception):
    """A call takes a path that no recording covers."""


class UnrepeatableError(Exception):
    """Two recordings differ although the function read the same values."""


def grow(
    root: Segment, events: list[Event], result: Any, writes: dict[Box, Slot]
) -> None:
    """Add a recording to the tree; its common prefix with other recordings must be
    equal. The ``drops`` of segments are left to those who bind them.

    Raises:
        UnrepeatableError: the prefix differs.
    """
    segment, position, has_event = root, 0, bool(root.steps or root.guard is not None)
    for event in events:
        if not isinstance(event, Guard):
            if not has_event:
                segment.steps.append(event)
            elif position >= len(segment.steps) or not event.same_as(
                segment.steps[position]
            ):
                raise UnrepeatableError(f"not what was done before: {event}")
            position += 1
            continue
        if has_event and (
            segment.guard != event.place or position != len(segment.steps)
        ):
            raise UnrepeatableError("another value is read than before")
        segment.guard = event.place
        has_event = event.value in segment.children
        segment = segment.children.setdefault(event.value, Segment())
        position = 0
    segment.result, segment.writes = result, writes


def boxes_written(segment: Segment) -> Iterator[Box]:
    """Yield the boxes that are set in ``segment`` or its successors."""
    yield from segment.writes
    for child in segment.children.values():
        yield from boxes_written(child)


def has_gradients(segment: Segment) -> bool:
    """Return whether gradients were recorded in ``segment`` or its successors."""
    if any(type(step) is Step and step.is_backward for step in segment.steps):
        return True
    return any(map(has_gradients, segment.children.values()))


def boxes_read(segment: Segment) -> Iterator[Box]:
    """Yield the boxes that are read in ``segment`` or its successors."""
    for step in segment.steps:
        if isinstance(step, Read):
            yield step.box
    for child in segment.children.values():
        yield from boxes_read(child)


#: Types of arguments without slots, which most other arguments have.
_LEAVES = frozenset((bool, int, float, str, type(None)))


def slots_in(value: Any) -> list[int]:
    """Return the places of the slots in nested arguments."""
    places: list[int] = []
    _append_slots(value, places)
    return places


def _append_slots(value: Any, places: list[int]) -> None:
    kind = type(value)
    if kind is Slot:
        places.append(value.place)
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) is Slot:  # nearly always
                places.append(item.place)
            elif type(item) not in _LEAVES:
                _append_slots(item, places)
    elif kind is StackedResult:
        _append_slots(value.value, places)
    elif kind is slice:
        _append_slots((value.start, value.stop, value.step), places)
    elif isinstance(value, dict):
        _append_slots(list(value.values()), places)


def find_drops(segment: Segment) -> set[int]:
    """Set ``drops`` in all segments; return the places that ``segment`` or later
    reads.
    """
    live = set(slots_in(segment.ends))
    for child in segment.children.values():
        live |= find_drops(child)
    if segment.guard is not None:
        live.add(segment.guard)
    drops = []
    for step in reversed(segment.steps):
        operands = set(step.operand_places) if isinstance(step, Step) else set()
        drops.append(tuple(sorted((operands | {*step.outputs}) - live)))
        live = (live - {*step.outputs}) | operands
    segment.drops = drops[::-1]
    return live


def _are_equal(a: Any, b: Any) -> bool:
    """Return whether nested arguments are equal; constants are compared by bytes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_are_equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_are_equal(a[key], b[key]) for key in a)
    if type(a) is slice:
        return _are_equal((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if type(a) is Tensor:
        return a is b or (a.backend is b.backend and _are_equal(a.numpy(), b.numpy()))
    if hasattr(a, "tobytes"):
        same: bool = a is b or (
            a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        )
        return same
    return a is b or bool(a == b)
