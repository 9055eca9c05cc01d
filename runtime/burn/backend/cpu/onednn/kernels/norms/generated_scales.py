"""Batch norms of a plan by constant factors and addends, for generated kernels.

Such a norm and the concatenation before it are one pass over memory. oneDNN's norm
reads dense images and would need the copy of the concatenation.
"""

from functools import partial

import numpy as np

from burn.backend.cpu.onednn.binding.capture import do, empty_like, noting
from burn.backend.cpu.onednn.binding.memory import Array

#: With fewer elements the saving is less than the time of a call.
LEAST = 1 << 12


def are_scaled_apart(x: Array) -> bool:
    """Return whether the plan scales the channels of ``x`` by generated code."""
    notes = noting()
    if notes is None or not notes.workspaces.is_generated:
        return False
    return bool(x.size >= LEAST)


def scaled(x: Array, scale: Array, shift: Array, has_relu: bool) -> Array:
    """Return ``x`` times a factor plus an addend for each channel, and its ReLU."""
    out: Array = empty_like(x)
    do(partial(scale_channels, x, scale, shift, out, has_relu))
    return out


def scale_channels(
    x: Array, scale: Array, shift: Array, out: Array, has_relu: bool
) -> None:
    """Write the product and the sum by NumPy."""
    extents = (-1, *(1 for _ in x.shape[2:]))
    np.multiply(x, scale.reshape(extents), out=out)
    np.add(out, shift.reshape(extents), out=out)
    if has_relu:
        np.maximum(out, np.float32(0), out=out)
