"""Operations of standalone modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from burn_import.standalone.thin.tensor import Tensor


def primitive(kernel: Callable[..., Any] | None = None, /, *, outputs: int = 1) -> Any:
    """The operation on tensors that runs ``kernel`` on their arrays.

    With ``outputs`` other than 1 it returns a tuple; 0 is any number of results.
    """

    def declare(kernel: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(kernel)
        def call(*args: Any, **static: Any) -> Any:
            try:
                with np.errstate(all="ignore"):
                    result = kernel(*map(_unwrap, args), **static)
            except (ValueError, TypeError, IndexError) as error:
                error.add_note(f"in ops.{kernel.__name__.rstrip('_')}")
                raise
            if outputs == 1:
                return Tensor(np.asarray(result))
            return tuple(Tensor(np.asarray(item)) for item in result)

        call.kernel = kernel  # type: ignore[attr-defined]
        return call

    return declare if kernel is None else declare(kernel)


def _unwrap(value: Any) -> Any:
    """The array of a tensor; lists, tuples and slices are looked into."""
    if isinstance(value, Tensor):
        return value.data
    kind = type(value)
    if kind is list or kind is tuple:
        return kind([_unwrap(item) for item in value])
    if kind is slice:
        parts = (value.start, value.stop, value.step)
        return slice(*(p.item() if isinstance(p, Tensor) else p for p in parts))
    return value
