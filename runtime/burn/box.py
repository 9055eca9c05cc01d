"""The only mutable thing: a box that holds a tensor."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from burn.attribute_hints import BOXES, add_hints
from burn.methods import Methods

if TYPE_CHECKING:
    from burn.backend.base import Backend
    from burn.dtypes import DType
    from burn.tensor import Tensor


@dataclass(frozen=True)
class Deferred:
    """A first value that is made when somebody reads it, and not if it is set before.

    A module that loads its weights right after construction never draws random ones.
    With a ``backend`` it takes the place of a value that was there.
    """

    shape: tuple[int, ...]
    dtype: "DType"
    make: "Callable[[], Tensor]"
    backend: "Backend | None" = None


class Reader(Protocol):
    """Who wants to know which boxes are read and set in its context."""

    def read(self, box: "Box") -> "Tensor":
        """The tensor that stands for what ``box`` holds."""

    def write(self, box: "Box", value: "Tensor") -> "Tensor":
        """What ``box`` holds once it is set to ``value``; raises if it may not be."""


_READER: ContextVar[Reader | None] = ContextVar("burn.reader", default=None)
# A plain flag in front of the context variable keeps reading fast.
_readers = 0
# Held while a box changes what it holds, never while that is made.
_CHANGING = threading.Lock()
_changes = 0
_freezings = 0


def freezings() -> int:
    """How often parameters were frozen or unfrozen, all together."""
    return _freezings


def changes() -> int:
    """How often boxes were set, all together: if it is the same, none was."""
    return _changes


def current_reader() -> Reader | None:
    """Who asks for the values of boxes in this context."""
    return _READER.get()


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Ask ``reader`` for the values of boxes in this context."""
    global _readers
    token = _READER.set(reader)
    _readers += 1
    try:
        yield
    finally:
        _readers -= 1
        _READER.reset(token)


class Box(Methods):
    """A named place for a tensor: a parameter, a buffer, a statistic, a random state.

    Primitives read it as the tensor it holds. ``version`` counts the times it was set,
    so that whoever derived something from it knows when to do so again.
    """

    __slots__ = ("_value", "version")
    #: Whether the box is part of the record (a random state is not).
    recorded = True
    #: Whether the box is part of the ``state_dict`` (a buffer may not be).
    persistent: bool = True

    def __init__(self, value: "Tensor | Deferred") -> None:
        self.version = 0
        self._value = value if isinstance(value, Deferred) else self._hold(value)

    def _hold(self, value: "Tensor") -> "Tensor":
        return value.without_tapes()

    @property
    def value(self) -> "Tensor":
        """The tensor held now."""
        if _readers:
            reader = _READER.get()
            if reader is not None:
                return reader.read(self)
        return self.held()

    def held(self) -> "Tensor":
        """:attr:`value`, whoever wants to know of it."""
        held = self._value
        if not isinstance(held, Deferred):
            return held
        value = self._hold(held.make())
        with _CHANGING:
            if self._value is held:
                self._value = value
                return value
        return self.held()  # somebody has set it meanwhile

    def detach(self) -> "Tensor":
        """:attr:`value` without its history: no gradient reaches this box."""
        return self.value.detach()

    def set(self, value: "Tensor") -> None:
        """Hold ``value`` from now on, on the backend of before, without its tape.

        Raises:
            ValueError: the shape or dtype differs from what is held.
        """
        held = self._hold(self.fitted(value))
        with _CHANGING:
            self._change(held)

    def lend(self, make: "Callable[[], Tensor]") -> int:
        """Hold, on the backend of before, what ``make`` gives once somebody reads it.

        The result is the version that this is.
        """
        with _CHANGING:
            before = self._value
            home = before.backend
            moved = make if home is None else lambda: make().to(home)
            self._change(Deferred(before.shape, before.dtype, moved, home))
            return self.version

    def _change(self, held: "Tensor | Deferred") -> None:
        """Hold something else; nobody else changes anything meanwhile."""
        global _changes
        self._value = held
        self.version += 1
        _changes += 1

    def fitted(self, value: "Tensor") -> "Tensor":
        """``value`` as ``set`` holds it: on the backend of before, without its tape.

        Raises:
            ValueError: the shape or dtype differs from what is held.
        """
        if value.shape != self.shape or value.dtype != self.dtype:
            raise ValueError(
                f"expected {self.dtype}{list(self.shape)}, "
                f"got {value.dtype}{list(value.shape)}"
            )
        if _readers:
            reader = _READER.get()
            if reader is not None:
                return reader.write(self, value)
        held = self._value
        return value.detach().to(held.backend or value.backend)

    def to(self, backend: "Backend") -> None:
        """Move what is held to ``backend``."""
        held = self._hold(self.value.detach().to(backend))
        with _CHANGING:
            self._change(held)

    @property
    def is_set(self) -> bool:
        """Whether a value was given, rather than how to make the first one."""
        held = self._value
        return not isinstance(held, Deferred) or held.backend is not None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> "DType":
        return self._value.dtype

    @property
    def backend(self) -> "Backend":
        return self.value.backend

    def numpy(self) -> Any:
        """The contents as a NumPy array."""
        return self.value.numpy()

    def __getstate__(self) -> object:
        self.held()  # a copy must not follow what this box is set to later
        return super().__getstate__()

    # A branch asks what is held: without these every box would count as true.
    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype}{list(self.shape)})"


add_hints(Box, BOXES)


class Parameter(Box):
    """A box that training changes: on ``Autodiff`` its value is a leaf of the tape.

    On nested ``Autodiff`` backends it is a leaf of every tape: a loss of gradients, as
    a penalty on them, has gradients by the parameter as well. Without
    :attr:`requires_grad` it is a constant of every tape.
    """

    __slots__ = ("_requires_grad",)

    def __init__(
        self, value: "Tensor | Deferred", *, requires_grad: bool = True
    ) -> None:
        self._requires_grad = requires_grad
        super().__init__(value)

    @property
    def requires_grad(self) -> bool:
        """Whether ``backward`` computes a gradient for this parameter.

        Setting it changes later calls; plans that read the parameter are recorded anew.
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        global _freezings
        with _CHANGING:
            _freezings += wanted != self._requires_grad
            self._requires_grad = wanted
            held = self._value
            if not isinstance(held, Deferred):
                self._change(self._hold(held))

    def _hold(self, value: "Tensor") -> "Tensor":
        bare = value.without_tapes()
        if not self._requires_grad or not bare.backend.tracks_gradients:
            return bare
        return bare.leaf(self).with_inner_leaves()


class PassingReader:
    """A reader that asks the one outside of its context, if there is one."""

    def __init__(self, outer: Reader | None) -> None:
        self._outer = outer

    def read(self, box: Box) -> "Tensor":
        return box.held() if self._outer is None else self._outer.read(box)

    def write(self, box: Box, value: "Tensor") -> "Tensor":
        if self._outer is not None:
            return self._outer.write(box, value)
        return value.detach().to(box.held().backend)


class Buffer(Box):
    """A box that is part of the record but not trained.

    One that is not ``persistent`` is in records, but not in the ``state_dict``, as
    PyTorch's ``register_buffer(..., persistent=False)``. Loading does not need its key
    if it has a value already.
    """

    __slots__ = ("persistent",)

    def __init__(self, value: "Tensor | Deferred", persistent: bool = True) -> None:
        super().__init__(value)
        self.persistent = persistent
