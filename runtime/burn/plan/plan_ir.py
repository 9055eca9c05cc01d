"""The plan IR: steps in order, and branches where a value was read on the host."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from burn.backend.base import Backend
from burn.box import Box
from burn.primitive import Primitive
from burn.tensor import Tensor


@dataclass(frozen=True)
class Slot:
    """The place of a value in a plan, wherever it stands among arguments."""

    place: int


class Origin(NamedTuple):
    """The path of the module, and the file and line, that called a primitive."""

    module: str = ""
    line: str = ""


@dataclass(frozen=True)
class Step:
    """A call of a primitive: slots stand for tensors in ``args``.

    ``outputs`` are the places of the results, ``shapes`` and ``dtypes`` what they were
    when they were recorded. ``is_backward`` marks a call that Autodiff made to compute
    gradients; passes need not keep the mark. ``origin`` is known where a plan is
    profiled, and passes need not keep it either.
    """

    primitive: Primitive[..., Any]
    args: tuple[Any, ...]
    static: dict[str, Any]
    outputs: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    is_backward: bool = False
    origin: Origin | None = None

    def same_as(self, other: "Step | Read") -> bool:
        """Whether another recording of the function has this step in its place."""
        return (
            isinstance(other, Step)
            and self.primitive is other.primitive
            and self.outputs == other.outputs
            and self.shapes == other.shapes
            and _same(self.args, other.args)
            and _same(self.static, other.static)
        )


@dataclass(frozen=True)
class Read:
    """What a box holds goes to a place, as long as it is on the same backend."""

    box: Box
    place: int
    backend: Backend

    @property
    def outputs(self) -> tuple[int, ...]:
        return (self.place,)

    def same_as(self, other: "Step | Read") -> bool:
        """Whether another recording reads this box in its place."""
        return (
            isinstance(other, Read)
            and self.box is other.box
            and self.place == other.place
            and self.backend is other.backend
        )

    def held(self) -> Tensor:
        """What the box holds.

        Raises:
            UnforeseenError: it was moved.
        """
        held = self.box.held()
        if held.backend is not self.backend:
            raise UnforeseenError(f"{self.box!r} is on {held.backend}")
        return held


@dataclass(frozen=True)
class Guard:
    """A value that the function read: what it did then depends on these bytes."""

    place: int
    value: bytes


@dataclass
class Segment:
    """Steps up to the next read, or up to the result.

    ``drops`` are the places that are needed no more after each step. With a ``guard``
    the plan goes on with the child of the value; otherwise ``result`` has the result,
    and ``writes`` the places of what boxes hold in the end. So many of the last steps
    are ``late``: they do nothing but make what is written, and cannot fail. Boxes that
    are ``varying`` are set by others between runs, so that nothing follows from them
    that holds for all runs.
    """

    steps: list[Step | Read] = field(default_factory=list)
    drops: list[tuple[int, ...]] = field(default_factory=list)
    guard: int | None = None
    children: "dict[bytes, Segment]" = field(default_factory=dict)
    result: Any = None
    writes: "dict[Box, Slot]" = field(default_factory=dict)
    late: int = 0
    varying: "frozenset[Box]" = frozenset()

    def in_time(self) -> "list[tuple[Step | Read, tuple[int, ...]]]":
        """The steps that are not late, with what they drop."""
        pairs = list(zip(self.steps, self.drops, strict=True))
        return pairs[: len(pairs) - self.late]

    def late_ones(self) -> "list[tuple[Step, tuple[int, ...]]]":
        """The late steps, with what they drop."""
        pairs = list(zip(self.steps, self.drops, strict=True))[-self.late :]
        return [(s, drops) for s, drops in pairs if self.late and isinstance(s, Step)]

    @property
    def ends(self) -> list[Any]:
        """The result, and the slots of what is written."""
        return [self.result, list(self.writes.values())]


@dataclass(frozen=True)
class Lifted:
    """A result on a backend that stands on that of its value."""

    value: Any
    backend: Backend


Event: TypeAlias = Step | Read | Guard


class UnforeseenError(Exception):
    """A call goes another way than every one that was recorded."""


class UnrepeatableError(Exception):
    """Two recordings differ where nothing that was read explains it."""


def grow(
    root: Segment, events: list[Event], result: Any, writes: dict[Box, Slot]
) -> None:
    """Add a recording to the tree; what it shares with others has to be the same.

    Raises:
        UnrepeatableError: it is not.
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
    find_drops(root)


def written(segment: Segment) -> Iterator[Box]:
    """The boxes that are set somewhere in ``segment`` or later."""
    yield from segment.writes
    for child in segment.children.values():
        yield from written(child)


def has_gradients(segment: Segment) -> bool:
    """Whether gradients were recorded somewhere in ``segment`` or later."""
    if any(type(step) is Step and step.is_backward for step in segment.steps):
        return True
    return any(map(has_gradients, segment.children.values()))


def boxes_read(segment: Segment) -> Iterator[Box]:
    """The boxes that are read somewhere in ``segment`` or later."""
    for step in segment.steps:
        if isinstance(step, Read):
            yield step.box
    for child in segment.children.values():
        yield from boxes_read(child)


def slots_in(value: Any) -> Iterator[int]:
    """The places of the slots in nested arguments."""
    if type(value) is Slot:
        yield value.place
    elif type(value) is Lifted:
        yield from slots_in(value.value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from slots_in(item)
    elif isinstance(value, dict):
        yield from slots_in(list(value.values()))
    elif type(value) is slice:
        yield from slots_in((value.start, value.stop, value.step))


def find_drops(segment: Segment) -> set[int]:
    """Set ``drops`` everywhere; the places that are read in ``segment`` or later."""
    live = set(slots_in(segment.ends))
    for child in segment.children.values():
        live |= find_drops(child)
    if segment.guard is not None:
        live.add(segment.guard)
    drops = []
    for step in reversed(segment.steps):
        operands = set(slots_in(step.args)) if isinstance(step, Step) else set()
        drops.append(tuple(sorted((operands | {*step.outputs}) - live)))
        live = (live - {*step.outputs}) | operands
    segment.drops = drops[::-1]
    return live


def _same(a: Any, b: Any) -> bool:
    """Whether nested arguments are equal, constants by their bytes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if type(a) is slice:
        return _same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if type(a) is Tensor:
        return a is b or (a.backend is b.backend and _same(a.numpy(), b.numpy()))
    if hasattr(a, "tobytes"):
        same: bool = a is b or (
            a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        )
        return same
    return a is b or bool(a == b)
