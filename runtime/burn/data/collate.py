"""Collation of items into batches, and conversion of batches to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from burn.backend.base import Backend
from burn.dtypes import default_dtype
from burn.plan.pytree import is_named, mapped
from burn.tensor import Tensor, from_numpy


def stack(items: Sequence[Any]) -> Any:
    """Return a batch with the structure of the items: arrays [N, ...].

    Arrays, tensors and numbers are stacked. Python floats become float32 and integers
    int64, arrays keep their dtype. Strings, bytes and other objects become a list.

    Raises:
        ValueError: there is no item, or shapes, keys or lengths differ.
        TypeError: items are of different types.
    """
    if not items:
        raise ValueError("expected at least one item, got none")
    return _stack(items, "items")


def _stack(items: Sequence[Any], path: str) -> Any:
    first = items[0]
    kind = type(first)
    if isinstance(first, np.ndarray | np.generic | Tensor):
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


def _stack_arrays(items: Sequence[Any], path: str) -> Any:
    arrays = [x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in items]
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


def _check_alike(values: Sequence[Any], what: str) -> None:
    other = next((value for value in values if value != values[0]), values[0])
    if other != values[0]:
        raise ValueError(
            f"{what}: expected {values[0]} as in the first item, got {other}; "
            "give the loader a collate function, or map the items to one shape"
        )


def as_tensors(batch: Any, backend: Backend | None = None) -> Any:
    """Return ``batch`` with tensors of ``backend`` instead of arrays; keep other
    leaves.

    Arrays are not copied if the backend can use them directly.
    """
    return mapped(lambda leaf: _as_tensor(leaf, backend), batch)


def _as_tensor(leaf: Any, backend: Backend | None) -> Any:
    if isinstance(leaf, np.ndarray):
        text = leaf.dtype.kind in "US"
        return from_numpy(leaf.astype(object) if text else leaf, backend)
    return leaf
