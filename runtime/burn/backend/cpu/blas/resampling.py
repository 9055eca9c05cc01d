"""Resampling along one axis as one call for a generated kernel.

NumPy computes the call until the kernel replaces it, when a plan is first repeated.
"""

from functools import partial
from math import prod

import numpy as np

from burn.backend.cpu.jit.operands import ResamplingOperands
from burn.backend.cpu.onednn.binding.capture import Notes, do
from burn.ops.resize import Resampling
from burn.ops.support import Array


def resample_lines(notes: Notes, step: Resampling, x: Array, axis: int) -> Array:
    """Return row-major ``x`` resampled along an axis by sums of lines."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    lines = x.reshape(prod(before), x.shape[axis], prod(after))
    taps = np.ascontiguousarray(step.taps, np.int64)
    weights = np.ones(taps.shape) if step.weights is None else step.weights
    out = notes.empty((len(lines), len(taps), lines.shape[2]), x.dtype)
    given = ResamplingOperands(
        lines, taps, np.ascontiguousarray(weights, np.float32), out
    )
    do(partial(sum_lines, given))
    return out.reshape(*before, len(taps), *after)


def sum_lines(given: ResamplingOperands) -> None:
    """Write the weighted sums of lines to ``given.out``, by NumPy."""
    lines, taps, weights, out = given
    np.multiply(lines[:, taps[:, 0]], weights[:, 0, None], out=out)
    for tap, factor in zip(taps.T[1:], weights.T[1:], strict=True):
        np.add(out, lines[:, tap] * factor[:, None], out=out)
