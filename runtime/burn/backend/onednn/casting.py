"""Casts between float32 and bfloat16 by oneDNN."""

from typing import Any

from burn.backend.cpu import Cpu
from burn.backend.onednn.cache import Primitives
from burn.backend.onednn.engine import current, limits
from burn.backend.onednn.memory import Array, address, empty_in_order, is_dense, lines
from burn.backend.onednn.noting import order_for
from burn.backend.onednn.operands import BFLOAT16, FLOAT32, form
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


def _cast(x: Array, dtype: DType) -> Array | None:
    """``x`` as ``dtype`` in its order or a better one; None where NumPy should."""
    session = current() if x.size >= max(limits().costly, 1) else None
    if session is None or not is_dense(x):
        return None

    order = order_for(x)

    def make(primitives: Primitives) -> "Recast | None":
        source, target = lines(primitives.api, x, dtype, order)
        reorder = primitives.reorder(source, target)
        return None if reorder is None else Recast(reorder, dtype, order)

    size = x.size if order is None else form(x)
    key = ("cast", size, x.dtype.char, dtype.char, order)
    found: Recast | None = session.primitives.get(key, make, x.size * 4)
    return None if found is None else found.run(x)


class Recast:
    """A cast of so many elements, into an order of axes or the same."""

    __slots__ = ("_dtype", "_order", "_prepared")

    def __init__(self, prepared: Prepared, dtype: DType, order: Any) -> None:
        self._prepared, self._dtype, self._order = prepared, dtype, order

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, x: Array, *parts: Array) -> Array:
        """The result, by a scale and a zero point if those are ``parts``."""
        out = empty_in_order(x, self._dtype, self._order)
        self._prepared.run(*map(address, (x, out, *parts)))
        return out
