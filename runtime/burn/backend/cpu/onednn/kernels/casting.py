"""Casts between float32 and bfloat16 with oneDNN.

The results equal NumPy's on every processor. An AVX512_BF16 instruction flushes
subnormal numbers to 0, and AVX2 code loses the sign of 0: each primitive is tested on a
sample before use, and NumPy casts if the result differs.
"""

from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import do, noted_by, order_for
from burn.backend.cpu.onednn.binding.engine import current, limits
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    empty_in_order,
    is_dense,
    lines,
)
from burn.backend.cpu.onednn.binding.operands import BFLOAT16, FLOAT32, form
from burn.backend.cpu.onednn.binding.prepared import Prepared
from burn.dtypes import DType
from burn.ops.casting import cast as cast_op

_PAIRS = ((FLOAT32, BFLOAT16), (BFLOAT16, FLOAT32))
#: Subnormal numbers of both dtypes, ties between two neighbors, and the extremes.
_SAMPLE = np.array(
    (0x00011FDD, 0x80011FDD, 0x00010000, 0x00000001, 0x00008000, 0x00018000)
    + (0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x80000000, 0xFF800000, 0x7FC00000),
    np.uint32,
).view(np.float32)


@cast_op.on(Cpu)
def cast(x: Array, *, dtype: DType) -> Array:
    """Compute :func:`burn.ops.cast` with oneDNN if that is faster, else with NumPy."""
    out = None
    if (x.dtype, dtype) in _PAIRS:
        out = _cast(x, dtype)
    return cast_op.kernel(x, dtype=dtype) if out is None else out


def _cast(x: Array, dtype: DType) -> Array | None:
    """Return ``x`` as ``dtype`` in its or a preferred order; None if NumPy is best."""
    session = current() if x.size >= max(limits().elements, 1) else None
    if session is None or not is_dense(x):
        return None

    order = order_for(x)

    def make(primitives: Primitives) -> "Recast | None":
        source, target = lines(primitives.api, x, dtype, order)
        reorder = primitives.reorder(source, target)
        if reorder is None:
            return None
        recast = Recast(reorder, dtype, order)
        return recast if _is_exact(recast, x, dtype) else None

    size = x.size if order is None else form(x)
    key = ("cast", size, x.dtype.char, dtype.char, order)
    kernel: Recast | None = session.primitives.get(key, make, x.size * 4)
    if kernel is not None:
        return kernel.run(x)
    return None if order is None else _cast_by_numpy(x, dtype, order)


def _cast_by_numpy(x: Array, dtype: DType, order: tuple[int, ...]) -> Array:
    """Return ``x`` as ``dtype`` in memory order ``order``, cast by NumPy."""
    out = empty_in_order(x, dtype, order)
    do(partial(np.copyto, out, x, casting="unsafe"))
    return out


def _is_exact(recast: "Recast", like: Array, dtype: DType) -> bool:
    """Return whether arrays in the form of ``like`` are cast exactly as by NumPy."""
    sample = np.empty_like(like)
    sample[...] = np.resize(_SAMPLE, like.shape).astype(like.dtype)
    with noted_by(None):
        results = recast.run(sample)
    expected = sample.astype(dtype)
    signs = np.signbit(results) == np.signbit(expected)
    return bool(np.all(np.isnan(expected) | (results == expected) & signs))


class Recast:
    """A cast of a number of elements, optionally into another memory order."""

    __slots__ = ("_dtype", "_order", "_prepared")

    def __init__(self, prepared: Prepared, dtype: DType, order: Any) -> None:
        self._prepared, self._dtype, self._order = prepared, dtype, order

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, x: Array, *parts: Array) -> Array:
        """Return the result, with a scale and a zero point if those are ``parts``."""
        out = empty_in_order(x, self._dtype, self._order)
        self._prepared.run(*map(address, (x, out, *parts)))
        return out
