"""Python dicts: classifier outputs by label, and features by name.

The values are tensors of rank 0; Python numbers are accepted as inputs.
"""

from __future__ import annotations

from typing import Any

from burn import dtypes
from burn.dtypes import DType
from burn.ops.casting import cast
from burn.ops.creation import array
from burn.ops.padding import stack
from burn.ops.shape import reshape
from burn.primitive import composite
from burn.tensor import Tensor


@composite
def zip_map(x: Any, keys: list[Any]) -> Any:
    """Return for each row of ``x`` ([rows, n], [n]) a dict of elements by ``keys``."""
    rows = reshape(x, (-1, len(keys)))
    return [
        dict(zip(keys, [rows[i, j] for j in range(len(keys))], strict=True))
        for i in range(rows.shape[0])
    ]


@composite(outputs=1)
def dict_vectorize(
    x: Any, vocabulary: list[Any], *, dtype: DType = dtypes.float32
) -> Any:
    """Return the values of the dict ``x`` at the keys of ``vocabulary``: [1, n].

    Missing values are 0, or an empty string.
    """
    nothing = "" if dtype == dtypes.string else 0
    return _row([x.get(key, nothing) for key in vocabulary], dtype)


@composite(outputs=1)
def cast_map(x: Any, size: int | None = None, *, dtype: DType = dtypes.float32) -> Any:
    """Return the values of the dict ``x`` as [1, n], in the order of its integer keys.

    With ``size`` every value is at the index of its key, and missing values are 0,
    among strings the text ``0.f``. Strings are parsed as numbers, numbers formatted as
    strings.

    Raises:
        ValueError: a key is negative or not below ``size``, or a string is no number.
    """
    keys = sorted(x)
    if size is not None and keys and not 0 <= keys[0] <= keys[-1] < size:
        raise ValueError(f"expected keys in [0, {size}), got {keys[0]} to {keys[-1]}")
    nothing = "0.f" if dtype == dtypes.string else 0
    wanted = keys if size is None else range(size)
    items = [_converted(x[k], dtype) if k in x else nothing for k in wanted]
    return _row(items, dtype)


def _converted(value: Any, dtype: DType) -> Any:
    """Return ``value`` for ``dtype``; numbers have six decimals as strings."""
    if isinstance(value, Tensor) and value.dtype != dtypes.string:
        if dtype != dtypes.string:
            return value
        value = value.item()
    if isinstance(value, Tensor):
        value = value.numpy().reshape(-1)[0]
    if dtype == dtypes.string:
        return value if isinstance(value, str) else f"{value:f}"
    number = float(value)
    return int(number) if dtypes.is_integer(dtype) else number


def _row(items: list[Any], dtype: DType) -> Any:
    """Return scalars and tensors of rank 0 as [1, n]."""
    if dtype != dtypes.string and any(isinstance(item, Tensor) for item in items):
        parts = [
            cast(item if isinstance(item, Tensor) else array(item), dtype=dtype)
            for item in items
        ]
        return reshape(stack(parts), (1, -1))
    plain = [
        item.numpy().reshape(-1)[0] if isinstance(item, Tensor) else item
        for item in items
    ]
    return array([plain], dtype=dtype)
