"""Convolutions of plans as one call for a generated kernel.

NumPy computes the call until the kernel replaces it, when a plan is first repeated.
"""

import platform
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.jit.policy import MEASURED
from burn.backend.cpu.onednn.binding.capture import Notes, do
from burn.ops.fused import After
from burn.ops.support import Array
from burn.ops.window import Windows


def is_generated(notes: Notes, weight: Array, bias: Array | None) -> bool:
    """Return whether a kernel is generated for a layer, whose weights are constant."""
    return (
        platform.machine() in MEASURED
        and notes.workspaces.is_generated
        and all(part is None or notes.is_constant(part) for part in (weight, bias))
    )


class Ending(NamedTuple):
    """The epilogue inside a kernel: it adds a residual, and clips to two limits.

    ``rest`` is the part of the epilogue that is left to later calls.
    """

    adds: bool
    limits: tuple[float, float]
    rest: After


def ending_of(after: After) -> Ending:
    """Return the start of an epilogue that a kernel computes."""
    links = list(after)
    adds = bool(links) and links[0][0] == "add"
    links = links[adds:]
    limits = (-inf, inf)
    if links and links[0][0] in ("relu", "clip"):
        numbers = links.pop(0)[1:] or (0.0, inf)
        limits = (float(numbers[0]), float(numbers[1]))
    return Ending(adds, limits, tuple(links))


def generated(
    notes: Notes,
    image: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None,
    wins: Windows,
    limits: tuple[float, float],
) -> Array:
    """Return the convolution of ``image`` [N, *size, C] with constants.

    It is row-major [N, *count, O], as ``residual`` is.
    """
    turned = weight.transpose(*range(2, weight.ndim), 1, 0)
    shape = (len(image), *wins.count, weight.shape[0])
    out: Array = notes.empty(shape, image.dtype)
    if residual is not None and not residual.flags.c_contiguous:
        copy = notes.empty(shape, image.dtype)
        notes.assign(copy, residual)
        residual = copy
    do(partial(convolve, image, turned, bias, residual, out, wins, limits))
    return out


def convolve(
    image: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None,
    out: Array,
    wins: Windows,
    limits: tuple[float, float],
) -> None:
    """Write the sums of products to ``out``, by NumPy.

    All pixels are rows of one product: threads of BLAS wait at the end of each.
    """
    out[...] = 0 if bias is None else bias
    rows, inner = out.reshape(-1, out.shape[-1]), weight.shape[-2]
    groups = image.shape[-1] // inner
    for tap, keys in wins.places():
        factors: Any = np.ascontiguousarray(weight[tap])
        pixels = np.ascontiguousarray(image[:, *keys]).reshape(len(rows), -1)
        if groups > 1:
            factors = factors.reshape(inner, groups, -1).swapaxes(0, 1)
            grouped = pixels.reshape(len(rows), groups, inner).swapaxes(0, 1)
            products = np.matmul(grouped, factors).swapaxes(0, 1).reshape(rows.shape)
        else:
            products = np.matmul(pixels, factors)
        np.add(rows, products, out=rows)
    if residual is not None:
        np.add(out, residual, out=out)
    for function, limit in zip((np.maximum, np.minimum), limits, strict=True):
        if np.isfinite(limit):
            function(out, np.float32(limit), out=out)
