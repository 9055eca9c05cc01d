"""Activations that generated kernels apply to a result before they store it."""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from burn.ops.support import Array


class PiecewiseLinear(NamedTuple):
    """The function ``clip(x * slope + shift, low, high)``, times ``x`` if it is gated.

    With the defaults it is the identity.
    """

    low: float = -inf
    high: float = inf
    slope: float = 1.0
    shift: float = 0.0
    is_gated: bool = False

    @classmethod
    def of(cls, numbers: Array) -> "PiecewiseLinear":
        """Return the function of five numbers of :meth:`numbers`."""
        low, high, slope, shift, is_gated = numbers.tolist()
        return cls(low, high, slope, shift, bool(is_gated))

    @property
    def is_clip(self) -> bool:
        """Return whether it only limits numbers."""
        return self[2:] == (1.0, 0.0, False)

    def apply(self, x: Array) -> None:
        """Replace the elements of ``x`` by their activations, with NumPy."""
        if self == PiecewiseLinear():
            return
        inner = x * np.float32(self.slope) + np.float32(self.shift)
        np.clip(inner, np.float32(self.low), np.float32(self.high), out=inner)
        np.multiply(x, inner, out=x) if self.is_gated else np.copyto(x, inner)

    def numbers(self) -> Array:
        """Return the five parameters as float32, as kernels read them."""
        return np.array(self, np.float32)


def activation_of(name: str, *numbers: Any) -> PiecewiseLinear | None:
    """Return the activation with a name of an epilogue, None for another function."""
    if name == "relu":
        return PiecewiseLinear(0.0)
    if name == "clip":
        low, high = map(float, numbers)
        return PiecewiseLinear(low, high)
    if name == "hard_sigmoid":
        slope, shift = map(float, numbers)
        return PiecewiseLinear(0.0, 1.0, slope, shift)
    if name == "hard_swish":
        return PiecewiseLinear(0.0, 1.0, 1 / 6, 0.5, True)
    return None
