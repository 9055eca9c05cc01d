"""Sliding windows over axes, computed element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from burn_ir.types import Array

Ints = Sequence[int]


def convolved(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Ints,
    pads: Sequence[tuple[int, int]],
    dilation: Ints,
    groups: int = 1,
) -> Array:
    """Return the convolution of ``x``."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    kernel, size = weight.shape[2:], x.shape[2:]
    count = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
    ]
    out = np.zeros((len(x), len(weight), *count), x.dtype)
    per, rows = weight.shape[1], len(weight) // groups
    for index in np.ndindex(*count):
        for tap in np.ndindex(*kernel):
            at = tuple(
                p * s + t * d
                for p, s, t, d in zip(index, stride, tap, dilation, strict=True)
            )
            for group in range(groups):
                part = x[(slice(None), slice(group * per, (group + 1) * per), *at)]
                own = slice(group * rows, (group + 1) * rows)
                factor = weight[(own, slice(None), *tap)]
                out[(slice(None), own, *index)] += part @ factor.T
    if bias is None:
        return out
    return np.asarray(out + bias.reshape(-1, *(1 for _ in kernel)))


def spread(
    x: Array,
    weight: Array,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    more: Ints,
    groups: int = 1,
) -> Array:
    """Return the transposed convolution of ``x``."""
    kernel, size = weight.shape[2:], x.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + m
        for n, k, s, d, m in zip(size, kernel, stride, dilation, more, strict=True)
    ]
    rows, per = weight.shape[1], len(weight) // groups
    out = np.zeros((len(x), rows * groups, *full), x.dtype)
    for index in np.ndindex(*size):
        for tap in np.ndindex(*kernel):
            at = tuple(
                p * s + t * d
                for p, s, t, d in zip(index, stride, tap, dilation, strict=True)
            )
            for group in range(groups):
                own = slice(group * per, (group + 1) * per)
                factor = weight[(own, slice(None), *tap)]
                part = x[(slice(None), own, *index)] @ factor
                out[(slice(None), slice(group * rows, (group + 1) * rows), *at)] += part
    cut = [slice(p, n - p) for n, p in zip(full, padding, strict=True)]
    return out[(slice(None), slice(None), *cut)]


def pooled(
    function: Callable[[Array], Any],
    x: Array,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints | None = None,
    ceil: bool = False,
    fill: float = np.nan,
) -> Array:
    """Return ``function`` of each window, given as a vector without outer elements.

    Padding is ``fill``; windows that extend beyond it are cut off.
    """
    dilation = dilation or [1] * len(kernel)
    size = x.shape[-len(kernel) :]
    count = [
        outputs(n, k, s, p, d, ceil)
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]
    lead = x.shape[: -len(kernel)]
    out = np.zeros((*lead, *count), np.float64)
    for index in np.ndindex(*out.shape):
        plane = x[index[: len(lead)]]
        at = index[len(lead) :]
        taps = list(taps_of(plane.shape, at, kernel, stride, padding, dilation))
        values = [plane[tap] if inside else fill for tap, inside in taps]
        out[index] = function(np.array(values, np.float64))
    return out.astype(x.dtype)


def outputs(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    """Return the number of windows along an axis."""
    rest = n + 2 * p - d * (k - 1) - 1
    if not ceil:
        return rest // s + 1
    count = -(-rest // s) + 1
    return count - 1 if (count - 1) * s >= n + p else count


def taps_of(
    shape: Ints, at: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Yield the indices of a window, and whether they are inside of the plane."""
    for tap in np.ndindex(*kernel):
        index = tuple(
            a * s + t * d - p
            for a, s, t, d, p in zip(at, stride, tap, dilation, padding, strict=True)
        )
        if all(i < n + p for i, n, p in zip(index, shape, padding, strict=True)):
            yield index, all(0 <= i < n for i, n in zip(index, shape, strict=True))


def resampled(x: Array, sizes: Ints, rows: Callable[[int, int, int], Array]) -> Array:
    """Return ``x`` with each of its last axes multiplied by a matrix.

    ``rows(axis, old, new)`` gives the matrix of ``new`` rows.
    """
    out = x.astype(np.float64)
    for axis, size in enumerate(sizes, x.ndim - len(sizes)):
        matrix = rows(axis - x.ndim + len(sizes), x.shape[axis], size)
        out = np.moveaxis(np.tensordot(out, matrix, (axis, 1)), -1, axis)
    return out.astype(x.dtype)
