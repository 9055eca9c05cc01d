"""The sum of large arrays, multithreaded."""

from math import gcd

import numpy as np

from burn.backend.cpu.onednn.binding.api import DST, REDUCTION_SUM, SRC
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import noting
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.memory import Array, address, is_dense, strided
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    Prepared,
    Ready,
    described,
)

#: With fewer elements NumPy's minimum and maximum take the same time.
LEAST = 1 << 17
#: The most and the fewest parts that are summed separately.
_MOST, _FEWEST = 64, 8


def total(x: Array) -> float | None:
    """Return the approximate sum of all elements; None if NumPy should check them.

    The result is NaN if an element is, or if the sum overflows.
    """
    parts = gcd(x.size, _MOST)
    if x.size < LEAST or parts < _FEWEST or x.dtype != FLOAT32:
        return None
    session = current()
    if session is None or noting() is not None or not is_dense(x):
        return None

    def make(primitives: Primitives) -> "_Total | None":
        api, columns = primitives.api, x.size // parts
        source = strided(api, (parts, columns), (columns, 1))
        target = strided(api, (parts, 1), (1, 1))
        description = described(
            *(api, "reduction", api.engine, REDUCTION_SUM, source, target, 0.0, 0.0)
        )
        if description is None:
            return None
        operands: Operands = [(SRC, source), (DST, target)]
        return _Total(primitives.prepared(description, operands), parts)

    kernel: _Total | None = session.primitives.get(("total", x.size), make, x.size * 4)
    return None if kernel is None else kernel.run(x)


class _Total(Ready):
    """A sum of parts of an array."""

    __slots__ = ("_sums",)

    def __init__(self, prepared: Prepared, parts: int) -> None:
        super().__init__(prepared)
        self._sums = np.empty(parts, FLOAT32)

    def run(self, x: Array) -> float:
        """Return the sum of the elements of ``x``."""
        self._prepared.run(address(x), address(self._sums))
        return float(np.add.reduce(self._sums))
