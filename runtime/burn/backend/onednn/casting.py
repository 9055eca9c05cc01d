"""Casts between float32 and bfloat16 by oneDNN."""

from typing import Any

import numpy as np

from burn.backend.cpu import Cpu
from burn.backend.onednn.cache import Primitives
from burn.backend.onednn.engine import current, limits
from burn.backend.onednn.memory import Array, address, is_dense, strided
from burn.backend.onednn.noting import empty_as
from burn.backend.onednn.operands import BFLOAT16, FLOAT32
from burn.backend.onednn.prepared import Prepared
from burn.dtypes import DType
from burn.ops.elementwise import cast as cast_op

_PAIRS = ((FLOAT32, BFLOAT16), (BFLOAT16, FLOAT32))


@cast_op.on(Cpu)
def cast(x: Array, *, dtype: DType) -> Array:
    """:func:`burn.ops.cast` by oneDNN where that pays, by NumPy elsewhere."""
    out = None
    if (x.dtype, dtype) in _PAIRS:
        out = _cast(x, dtype)
    return cast_op.kernel(x, dtype=dtype) if out is None else out


def _cast(x: Array, dtype: np.dtype[Any]) -> Array | None:
    """``x`` as ``dtype`` in its memory order; None where NumPy should do it."""
    session = current() if x.size >= max(limits().costly, 1) else None
    if session is None or not is_dense(x):
        return None

    def make(primitives: Primitives) -> "_Cast | None":
        return _prepare(primitives, x, dtype)

    key = ("cast", x.size, x.dtype.char, dtype.char)
    found: _Cast | None = session.primitives.get(key, make, x.size * 4)
    return None if found is None else found.run(x)


class _Cast:
    """A cast of so many elements, in whatever order they are in memory."""

    __slots__ = ("_dtype", "_prepared")

    def __init__(self, prepared: Prepared, dtype: np.dtype[Any]) -> None:
        self._prepared, self._dtype = prepared, dtype

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, x: Array) -> Array:
        """The result, in the memory order of ``x``."""
        out = empty_as(x, self._dtype)
        self._prepared.run(address(x), address(out))
        return out


def _prepare(primitives: Primitives, x: Array, dtype: np.dtype[Any]) -> _Cast | None:
    source = strided(primitives.api, (x.size,), (1,), x.dtype)
    target = strided(primitives.api, (x.size,), (1,), dtype)
    reorder = primitives.reorder(source, target)
    return None if reorder is None else _Cast(reorder, dtype)
