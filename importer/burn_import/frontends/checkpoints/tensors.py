"""Storages, and the tensors that are views on them.

Nothing is read before :meth:`Tensor.array` is called, and then only mapped. What a file
says of a tensor is checked when the file is opened, in integers without a limit, since
NumPy would look past the end of a buffer if it were told to.
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
    """Bytes in a file that storages are made of, found now or later by ``place``."""

    __slots__ = ("_array", "_raw", "swapped", "where")

    def __init__(self, where: str, raw: memoryview | None = None) -> None:
        self.where = where
        self.swapped = 1  # the size of the elements whose bytes stand in big-endian
        self._raw = raw
        self._array: Array | None = None

    @property
    def placed(self) -> bool:
        """Whether it is known where the bytes are."""
        return self._raw is not None

    def attach(self, raw: memoryview) -> None:
        """Set the memory with the bytes."""
        self._raw = raw

    def bytes(self) -> Array:
        """All of them, as one array that tensors are views on."""
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
        """The storage of ``count`` elements from element ``offset`` on.

        Raises:
            InvalidModel: it reaches beyond this one.
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
    """Affine quantization: the number is ``scale * (q - zero_point)``.

    For each channel of ``axis`` the two are tensors, else numbers.
    """

    scale: float | Tensor
    zero_point: int | Tensor
    axis: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A tensor in a file: ``dtype`` and ``shape`` at once, ``array()`` when asked.

    ``strides`` and ``offset`` count elements of the ``storage``. Tensors of one storage
    are views on one array. Quantised tensors are integers with a ``quantization``.
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
            raise InvalidModel(f"dtype {self.element.name} has no place in NumPy")
        return self.element.dtype

    def array(self) -> Array:
        """The tensor as a read-only view on the mapped file, where that is possible.

        The address may be unfit for the dtype, as files do not align all storages. Only
        big-endian storages, and tensors that are to be conjugated or negated, are
        copied. A file cut short by someone else while it is open ends the process.

        Raises:
            InvalidModel: a bool tensor has bytes other than 0 and 1.
        """
        block = self.storage.block.bytes()
        size = self.element.size
        # One element of an axis has no stride, and NumPy's are below 2**63.
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
        return self._as_meant(view)

    def _as_meant(self, view: Array) -> Array:
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
    """The tensor of these parts, every one of which a file made up.

    Raises:
        InvalidModel: they are no tensor within the storage.
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
        raise InvalidModel(f"{where} is beyond any memory")
    room = storage.count * storage.element.size
    _check_room(where, shape, strides, at, room, element.size)
    if prod(shape) * element.size > max(limits.view, 4 * room):
        raise InvalidModel(f"{where} repeats {room} bytes beyond reason")
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
    """The numbers in a list or tuple, each in 0 .. 2**63 - 1.

    Raises:
        InvalidModel: they are something else, or more than an array can have axes.
    """
    if not isinstance(values, tuple | list) or len(values) > _MAX_RANK:
        raise InvalidModel(f"expected {noun} of a tensor, got {named(values)}")
    for value in values:
        if type(value) is not int or not 0 <= value <= _MAX_BYTES:
            got = shown(value) if type(value) is int else named(value)
            raise InvalidModel(f"expected {noun} of 0 or more in a tensor, got {got}")
    return tuple(values)
