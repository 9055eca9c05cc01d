"""Tensors of standalone modules: arrays with the operators of burn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from burn.dtypes import DType, default_dtype
from burn.methods import Methods


class Tensor(Methods):
    """An n-dimensional array of one dtype. It never changes.

    Made by :func:`tensor`, :func:`from_numpy` and every operation.
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        shape: tuple[int, ...] = self.data.shape
        return shape

    @property
    def dtype(self) -> DType:
        """The element type, a NumPy dtype object."""
        dtype: DType = self.data.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only NumPy array."""
        array: np.ndarray[Any, Any] = self.data.view()
        array.flags.writeable = False
        return array

    def item(self) -> Any:
        """The only element, as a Python value.

        Raises:
            ValueError: there is not exactly one.
        """
        return self.data.item()

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        return self.data.tolist()

    def detach(self) -> Tensor:
        """This tensor: there are no gradients."""
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and dtype != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, int):
            raise TypeError(f"expected an integer tensor, got {self.dtype}")
        return value

    def __float__(self) -> float:
        return float(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (Tensor(np.asarray(part)) for part in self.data)

    def __repr__(self) -> str:
        body = np.array2string(
            self.numpy(), prefix="tensor(", separator=", ", threshold=64, precision=4
        )
        return f"tensor({body}, {self.dtype})"


def tensor(data: Any, *, dtype: DType | None = None) -> Tensor:
    """A tensor with a copy of ``data``: nested lists, numbers, strings, any array.

    Python floats become float32 and integers int64; arrays keep their dtype.
    """
    array = np.array(data)
    if dtype is not None:
        array = array.astype(dtype)
    elif array.dtype.kind in "US":
        array = array.astype(object)
    elif not hasattr(data, "dtype") and array.dtype.kind in "fc":
        array = array.astype(default_dtype(array.dtype.type(0).item()))
    return from_numpy(array)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on ``array`` itself: do not change it after."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    return Tensor(array)
