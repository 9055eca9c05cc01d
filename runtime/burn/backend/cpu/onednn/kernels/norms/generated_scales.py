"""Batch norms of a plan by constant factors and addends, for generated kernels.

Together with a concatenation ahead of it such a norm is one pass over memory, where
oneDNN's, which reads dense images, needs the copy of the concatenation.
"""

from functools import partial

import numpy as np

from burn.backend.cpu.onednn.binding.capture import do, empty_like, noting
from burn.backend.cpu.onednn.binding.memory import Array

#: For fewer elements a call takes as long as is saved.
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
