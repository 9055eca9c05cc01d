"""Storages, and tensors that are views of them.

Nothing is read before :meth:`Tensor.array` is called, and then only mapped. Offsets,
shapes and strides are validated when the file is opened, in Python integers, because
NumPy would not check them against the end of the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from burn.dtypes import DType
from burn.record.errors import shown
from burn_import.frontends.checkpoints.element_types import Element
from burn_import.frontends.checkpoints.limits import Limits
from burn_import.frontends.checkpoints.pickle_values import Value, named
from burn_ir import InvalidModel
from burn_ir.types import Array

_MAX_RANK = 64
_MAX_BYTES = 2**63 - 1


class Block:
    """Bytes of the file for one or more storages, located now or later."""

    __slots__ = ("_array", "_raw", "swapped", "where")

    def __init__(self, where: str, raw: memoryview | None = None) -> None:
        self.where = where
        self.swapped = 1  # element size if the bytes are big-endian
        self._raw = raw
        self._array: Array | None = None

    @property
    def placed(self) -> bool:
        """Whether the bytes are located."""
        return self._raw is not None

    def attach(self, raw: memoryview) -> None:
        """Set the memory of the block."""
        self._raw = raw

    def bytes(self) -> Array:
        """Return all bytes as one array, the base of all tensors in the block."""
        if self._array is None:
            array = np.frombuffer(self._raw or b"", np.uint8)
            if self.swapped > 1:
                words = array.view(f"u{self.swapped}").byteswap()
                array = words.view(np.uint8)
                array.flags.writeable = False
            self._array = array
        return self._array


@dataclass(frozen=True, eq=False, slots=True)
class Storage:
    """``count`` elements in a block, from byte ``start`` on."""

    block: Block
    element: Element
    count: int
    start: int = 0

    def part(self, offset: int, count: int) -> Storage:
        """Return a storage of ``count`` elements from element ``offset`` on.

        Raises:
            InvalidModel: it exceeds this storage.
        """
        if not 0 <= offset <= offset + count <= self.count:
            raise InvalidModel(
                f"{self.block.where}: expected a view within {self.count} elements, "
                f"got {count} from {offset} on"
            )
        start = self.start + offset * self.element.size
        return Storage(self.block, self.element, count, start)


@dataclass(frozen=True, eq=False, slots=True)
class Quantization:
    """Affine quantization: the real value is ``scale * (q - zero_point)``.

    ``scale`` and ``zero_point`` are tensors over the channels of ``axis``, or numbers.
    """

    scale: float | Tensor
    zero_point: int | Tensor
    axis: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A tensor in a file: ``dtype`` and ``shape`` are known, ``array()`` maps it.

    ``strides`` and ``offset`` count elements of the ``storage``. Tensors of one storage
    are views of one array. Quantized tensors are integers with a ``quantization``.
    """

    storage: Storage
    element: Element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    quantization: Quantization | None = None
    conjugate: bool = False
    negative: bool = False

    @property
    def dtype(self) -> DType:
        """The dtype of the array."""
        if self.element.dtype is None:
            raise InvalidModel(f"dtype {self.element.name} has no NumPy equivalent")
        return self.element.dtype

    def array(self) -> Array:
        """Return the tensor as a read-only view of the mapped file where possible.

        The array may be unaligned for its dtype, as files do not align all storages.
        Only big-endian storages and lazily conjugated or negated tensors are copied. If
        another process truncates the file while it is mapped, this process is killed
        (SIGBUS).

        Raises:
            InvalidModel: a bool tensor has bytes other than 0 and 1.
        """
        block = self.storage.block.bytes()
        size = self.element.size
        # An axis of extent 1 needs no stride, and NumPy's strides are below 2**63.
        strides = [
            stride * size if dim > 1 else size
            for dim, stride in zip(self.shape, self.strides, strict=True)
        ]
        view: Array = np.ndarray(
            self.shape,
            np.uint8 if self.element.name == "bool" else self.dtype,
            block if 0 not in self.shape else np.empty(0, np.uint8),
            self.storage.start + self.offset * size if 0 not in self.shape else 0,
            strides if 0 not in self.shape else None,
        )
        return self._with_flags(view)

    def _with_flags(self, view: Array) -> Array:
        if self.element.name == "bool":
            if view.max(initial=0) > 1:
                raise InvalidModel(
                    f"{self.storage.block.where}: expected bytes 0 and 1 in a bool "
                    f"tensor, got {view.max()}"
                )
            view = view.view(np.bool_)
        if self.conjugate:
            view = np.conj(view)
        if self.negative:
            view = np.negative(view)
        view.flags.writeable = False
        return view


def tensor_in(
    limits: Limits,
    storage: Value,
    offset: Value,
    size: Value,
    stride: Value,
    element: Element | None = None,
    **more: Any,
) -> Tensor:
    """Return a tensor after validating the untrusted fields of a file.

    Raises:
        InvalidModel: the fields describe no tensor within the storage.
    """
    if not isinstance(storage, Storage):
        raise InvalidModel(f"expected the storage of a tensor, got {named(storage)}")
    shape, strides = integers(size, "sizes"), integers(stride, "strides")
    (at,) = integers((offset,), "an offset")
    element = element or storage.element
    where = f"{storage.block.where}: a tensor of shape {shown(list(shape))}"
    if len(shape) != len(strides):
        raise InvalidModel(f"{where}: expected as many strides, got {len(strides)}")
    if prod(dim or 1 for dim in shape) * element.size > _MAX_BYTES:
        raise InvalidModel(f"{where} is too large for memory")
    room = storage.count * storage.element.size
    _check_room(where, shape, strides, at, room, element.size)
    if prod(shape) * element.size > max(limits.view, 4 * room):
        raise InvalidModel(
            f"{where} repeats {room} bytes more often than the limit allows"
        )
    return Tensor(storage, element, shape, strides, at, **more)


def _check_room(
    where: str,
    shape: Sequence[int],
    strides: Sequence[int],
    at: int,
    room: int,
    size: int,
) -> None:
    if 0 in shape:
        return
    last = at + sum(
        (dim - 1) * stride for dim, stride in zip(shape, strides, strict=True)
    )
    if (last + 1) * size > room:
        raise InvalidModel(
            f"{where} reaches to element {last}, but its storage has {room // size}"
        )


def integers(values: Value, noun: str) -> tuple[int, ...]:
    """Return the numbers in a list or tuple, each in 0 .. 2**63 - 1.

    Raises:
        InvalidModel: ``values`` is something else, or longer than the largest rank.
    """
    if not isinstance(values, tuple | list) or len(values) > _MAX_RANK:
        raise InvalidModel(f"expected {noun} of a tensor, got {named(values)}")
    for value in values:
        if type(value) is not int or not 0 <= value <= _MAX_BYTES:
            got = shown(value) if type(value) is int else named(value)
            raise InvalidModel(f"expected {noun} of 0 or more in a tensor, got {got}")
    return tuple(values)
