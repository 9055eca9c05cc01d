"""Boxes: mutable containers of tensors, for parameters, buffers and other state."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from burn.attribute_hints import add_hints
from burn.methods import Methods
from burn.numpy_interface import NumpyInterface
from burn.tensor_hints import BOXES

if TYPE_CHECKING:
    from burn.backend.base import Backend
    from burn.dtypes import DType
    from burn.tensor import Tensor


class Deferred:
    """A lazy initial value, computed at the first read unless the box is set before.

    A module that loads its weights right after construction never draws random ones.
    With a ``backend`` it replaces a value that existed before.
    """

    __slots__ = ("backend", "dtype", "make", "shape")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: "DType",
        make: "Callable[[], Tensor]",
        backend: "Backend | None" = None,
    ) -> None:
        self.shape, self.dtype, self.make = shape, dtype, make
        self.backend = backend


class Reader(Protocol):
    """An observer of reads and writes of boxes in its context."""

    def read(self, box: "Box") -> "Tensor":
        """Return the tensor that represents the value of ``box``."""

    def write(self, box: "Box", value: "Tensor") -> "Tensor":
        """Return the new value of ``box``, or raise an error if it may not be set."""


_READER: ContextVar[Reader | None] = ContextVar("burn.reader", default=None)
# A plain flag in front of the context variable keeps reading fast.
_readers = 0
# Held while a box is set, never while its value is computed.
_CHANGING = threading.Lock()
_changes = 0
_freezings = 0
_replacements = 0


def replacements() -> int:
    """Return the total number of times that modules of models were replaced."""
    return _replacements


def edits() -> int:
    """Return the number of freezings and replacements, to detect outdated plans."""
    return _freezings + _replacements


def note_replacement() -> None:
    """Outdate all plans, since they may have recorded a module that was replaced.

    Replacements by the recorded function itself are part of its recording.
    """
    global _replacements
    if current_reader() is None:
        with _CHANGING:
            _replacements += 1


def changes() -> int:
    """Return the total number of times that boxes were set, to detect changes."""
    return _changes


def current_reader() -> Reader | None:
    """Return the reader of this context, or None."""
    return _READER.get()


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Make ``reader`` observe all boxes in this context."""
    global _readers
    token = _READER.set(reader)
    _readers += 1
    try:
        yield
    finally:
        _readers -= 1
        _READER.reset(token)


class Box(NumpyInterface, Methods):
    """A mutable container of a tensor: parameter, buffer, statistic or random key.

    Primitives accept a box in place of its tensor. ``version`` counts the times it was
    set, so that derived values can be invalidated.
    """

    __slots__ = ("_value", "version")
    #: Whether the box is saved in records (a random state is not).
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
        """The current tensor."""
        if _readers:
            reader = _READER.get()
            if reader is not None:
                return reader.read(self)
        return self.held()

    def held(self) -> "Tensor":
        """Return :attr:`value` without notifying a reader."""
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
        """Return :attr:`value` without its history: no gradient reaches this box."""
        return self.value.detach()

    def set(self, value: "Tensor") -> None:
        """Replace the value, on the same backend and without its history.

        Raises:
            ValueError: the shape or dtype differs from the current value.
        """
        held = self._hold(self.fitted(value))
        with _CHANGING:
            self._change(held)

    def lend(self, make: "Callable[[], Tensor]") -> int:
        """Set a lazy value on the same backend; ``make`` computes it at the first read.

        Return the version of the box with this value.
        """
        with _CHANGING:
            before = self._value
            home = before.backend
            moved = make if home is None else lambda: make().to(home)
            self._change(Deferred(before.shape, before.dtype, moved, home))
            return self.version

    def _change(self, held: "Tensor | Deferred") -> None:
        """Replace the value. The caller holds the lock."""
        global _changes
        self._value = held
        self.version += 1
        _changes += 1

    def fitted(self, value: "Tensor") -> "Tensor":
        """Return ``value`` as ``set`` stores it: on the box's backend, without history.

        Raises:
            ValueError: the shape or dtype differs from the current value.
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
        """Move the value to ``backend``."""
        held = self._hold(self.value.detach().to(backend))
        with _CHANGING:
            self._change(held)

    @property
    def is_set(self) -> bool:
        """Return whether the value is set, computed or lent, and not still deferred."""
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
        """Return the value as a NumPy array."""
        return self.value.numpy()

    def __getstate__(self) -> object:
        self.held()  # a copy must not have later values of this box
        return super().__getstate__()

    # Without these methods every box would be true in a condition.
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
    """A trainable box: on ``Autodiff`` its value is a leaf of the tape.

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
    """A reader that forwards to the reader of the enclosing context, if any."""

    def __init__(self, outer: Reader | None) -> None:
        self._outer = outer

    def read(self, box: Box) -> "Tensor":
        return box.held() if self._outer is None else self._outer.read(box)

    def write(self, box: Box, value: "Tensor") -> "Tensor":
        if self._outer is not None:
            return self._outer.write(box, value)
        return value.detach().to(box.held().backend)


class Buffer(Box):
    """A box that is saved in records but not trained.

    A buffer that is not ``persistent`` is in records but not in the ``state_dict``,
    like PyTorch's ``register_buffer(..., persistent=False)``. Loading does not require
    its key if it has a value already.
    """

    __slots__ = ("persistent",)

    def __init__(self, value: "Tensor | Deferred", persistent: bool = True) -> None:
        super().__init__(value)
        self.persistent = persistent
