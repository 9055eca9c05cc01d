"""Collation of items into batches, and conversion of batches to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from burn.backend.base import Backend
from burn.dtypes import default_dtype
from burn.plan.pytree import is_named, mapped
from burn.tensor import Tensor, from_numpy


def stack(items: Sequence[Any]) -> Any:
    """Return a batch with the structure of the items: arrays [N, ...].

    Arrays, tensors and numbers are stacked, also tensors of PyTorch and images of
    Pillow. Python floats become float32 and integers int64, arrays keep their dtype.
    Strings, bytes and other objects become a list.

    Raises:
        ValueError: there is no item, or shapes, keys or lengths differ.
        TypeError: items are of different types.
    """
    if not items:
        raise ValueError("expected at least one item, got none")
    return _stack(items, "items")


@dataclass(frozen=True)
class PaddedStack:
    """A collate function for arrays of different lengths: :func:`stack` after padding.

    Arrays are padded at the end of their first axis, to the next ``multiple`` of the
    largest length in the batch. ``values`` are the padding of each field of an item, or
    one number for all. With few lengths a compiled step records few plans::

        Loader(texts, batch=16, collate=PaddedStack(values=(0, 0, -100), multiple=32))
    """

    values: float | tuple[float, ...] = 0
    multiple: int = 1

    def __post_init__(self) -> None:
        if self.multiple < 1:
            raise ValueError(f"expected multiple >= 1, got {self.multiple}")

    def __call__(self, items: Sequence[Any]) -> Any:
        """Return a batch of the padded items.

        Raises:
            ValueError: there is no item, or another number of fields than of values.
            TypeError: an item is neither an array nor a tuple or list of arrays.
        """
        if not items:
            raise ValueError("expected at least one item, got none")
        items = [mapped(_as_array, item) for item in items]
        if isinstance(items[0], np.ndarray):
            (field,) = self._values(1)
            return stack(_padded(items, field, self.multiple, "items"))
        kind: Any = type(items[0])
        if not isinstance(items[0], tuple | list):
            name = kind.__name__
            raise TypeError(f"expected items of arrays, or tuples of them, got {name}")
        fields = self._values(len(items[0]))
        parts = [
            _padded(part, value, self.multiple, f"items[{number}]")
            for number, (part, value) in enumerate(
                zip(zip(*items, strict=True), fields, strict=True)
            )
        ]
        make = (lambda row: kind(*row)) if is_named(kind) else kind
        return stack([make(row) for row in zip(*parts, strict=True)])

    def _values(self, fields: int) -> tuple[float, ...]:
        if not isinstance(self.values, tuple):
            return (self.values,) * fields
        if len(self.values) != fields:
            raise ValueError(
                f"expected a value for each of {fields} fields, got {self.values}"
            )
        return self.values


def _padded(items: Sequence[Any], value: float, multiple: int, path: str) -> list[Any]:
    """Return arrays of one length; numbers stay as they are."""
    if not all(isinstance(item, np.ndarray) and item.ndim for item in items):
        return list(items)
    length = -(-max(len(item) for item in items) // multiple) * multiple
    _check_alike([item.shape[1:] for item in items], f"shapes of rows of {path}")
    return [
        np.concatenate([x, np.full((length - len(x), *x.shape[1:]), value, x.dtype)])
        for x in items
    ]


def _stack(items: Sequence[Any], path: str) -> Any:
    first = items[0]
    kind = type(first)
    if isinstance(first, np.generic) or _is_array(first):
        return _stack_arrays(items, path)
    if isinstance(first, Number):
        return _stack_numbers(items, path)
    _check_kinds(items, kind, path)
    if isinstance(first, dict):
        _check_alike([sorted(item, key=str) for item in items], f"keys of {path}")
        return {
            key: _stack([item[key] for item in items], f"{path}[{key!r}]")
            for key in first
        }
    if isinstance(first, list | tuple):
        _check_alike([len(item) for item in items], f"lengths of {path}")
        parts = [
            _stack(part, f"{path}[{position}]")
            for position, part in enumerate(zip(*items, strict=True))
        ]
        return kind(*parts) if is_named(kind) else kind(parts)
    return list(items)


def _is_array(item: Any) -> bool:
    """Return whether an item is an array of any library."""
    if isinstance(item, np.generic | str | bytes):
        return False
    return any(hasattr(item, name) for name in ("__array__", "__array_interface__"))


def _as_array(item: Any) -> Any:
    """Return an array of any library as one of NumPy, and other items as they are."""
    if isinstance(item, Tensor):
        return item.numpy()
    return np.asarray(item) if _is_array(item) else item


def _stack_arrays(items: Sequence[Any], path: str) -> Any:
    arrays = [np.asarray(_as_array(item)) for item in items]
    _check_alike([array.shape for array in arrays], f"shapes of {path}")
    _check_alike([array.dtype for array in arrays], f"dtypes of {path}")
    return np.stack(arrays)


def _stack_numbers(items: Sequence[Any], path: str) -> Any:
    if not all(isinstance(item, Number | np.generic) for item in items):
        kinds = sorted({type(item).__name__ for item in items})
        raise TypeError(f"{path}: expected numbers, got {kinds}")
    array = np.array(items)
    if array.dtype.kind in "fc":
        array = array.astype(default_dtype(array.dtype.type(0).item()))
    return array


def _check_kinds(items: Sequence[Any], kind: type[Any], path: str) -> None:
    other = next((item for item in items if type(item) is not kind), items[0])
    if type(other) is not kind:
        raise TypeError(
            f"{path}: expected {kind.__name__} as in the first item, "
            f"got {type(other).__name__}"
        )


def _check_alike(values: Sequence[Any], path: str) -> None:
    other = next((value for value in values if value != values[0]), values[0])
    if other != values[0]:
        raise ValueError(
            f"{path}: expected {values[0]} as in the first item, got {other}; "
            "give the loader a collate function, or map the items to one shape"
        )


def as_tensors(batch: Any, backend: Backend | None = None) -> Any:
    """Return ``batch`` with tensors of ``backend`` for arrays, and other leaves as is.

    Arrays are not copied if the backend can use them directly.
    """
    return mapped(lambda leaf: _as_tensor(leaf, backend), batch)


def _as_tensor(leaf: Any, backend: Backend | None) -> Any:
    if isinstance(leaf, np.ndarray):
        text = leaf.dtype.kind in "US"
        return from_numpy(leaf.astype(object) if text else leaf, backend)
    return leaf
