"""Fourier transforms, windows and filters.

Complex numbers are pairs of reals in a last axis of extent 2.
"""

from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn.ops.elementwise import mul
from burn.ops.indexing import getitem, take
from burn.ops.padding import pad
from burn.ops.shape import reshape
from burn.ops.support import Array, accumulate, integers, namespace, plain_number
from burn.primitive import composite, primitive
from burn.tensor import Tensor


@primitive
def dft(
    x: Array,
    length: Any = None,
    axis: Any = -2,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Array:
    """Return the discrete Fourier transform of ``x`` [..., 1 or 2] along ``axis``.

    The signal is cut or filled with zeros to ``length``. ``inverse`` divides by it.
    ``onesided`` keeps the ``length // 2 + 1`` first frequencies of a real signal; the
    inverse makes a real signal [..., 1] of these, by default of an even length.

    Raises:
        ValueError: the last axis is none of complex numbers, or is transformed; or
            half a transform of a complex signal is asked for.
    """
    along, count = _transformed(x, length, axis, inverse and onesided)
    xp, work = namespace(x), _complex(accumulate(x))
    if count == 0 and length is None and (inverse or not onesided):
        parts = 1 if onesided else 2  # NumPy transforms no empty signals
        return xp.zeros((*x.shape[:along], 0, *x.shape[along + 1 : -1], parts), x.dtype)
    if onesided and not inverse:
        if x.shape[-1] != 1:
            raise ValueError("expected a real signal [..., 1] if onesided")
        out = xp.fft.rfft(work, count, along)
    elif onesided:
        out = xp.fft.irfft(work, count, along)
        return out[..., None].astype(x.dtype, copy=False)
    else:
        out = (xp.fft.ifft if inverse else xp.fft.fft)(work, count, along)
    parts = xp.ascontiguousarray(out)[..., None].view(out.real.dtype)
    return parts.astype(x.dtype, copy=False)


@dft.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    length: Any = None,
    axis: Any = -2,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Any:
    along, count = _transformed(x, length, axis, inverse and onesided)

    def share() -> Any:
        if not count:
            widths = (0, 0, x.shape[along], x.shape[-1] - grad.shape[-1])
            return pad(grad, widths, 0, (along, -1))
        # Up to the factor, each direction is the other's adjoint.
        if inverse and onesided:
            back = dft(grad, count, along, onesided=True)
            back = mul(back, _multiplicity(back, along, count))
        elif inverse:
            back = dft(grad, count, along) / count
        else:
            back = dft(grad, count, along, inverse=True) * count
        back = pad(back, (0, x.shape[along] - back.shape[along]), 0, along)
        return getitem(back, (..., slice(0, x.shape[-1])))

    return share


def _transformed(x: Any, length: Any, axis: Any, halved: bool) -> tuple[int, int]:
    """Return the axis as a nonnegative number, and the transform length."""
    (along,) = integers(axis)
    along += x.ndim if along < 0 else 0
    if not 0 <= along < x.ndim - 1 or x.shape[-1] not in (1, 2):
        raise ValueError(
            "expected a last axis of 1 or 2 and another one to transform, "
            f"got shape {list(x.shape)} and axis {along}"
        )
    if length is None:
        extent = x.shape[along]
        return along, 2 * (extent - 1) if halved else extent
    (count,) = integers(length)
    return along, count


def _complex(x: Array) -> Array:
    """Return ``x`` [..., 1 or 2] as complex or real numbers [...]."""
    if x.shape[-1] == 1:
        return x[..., 0]
    kind = dtypes.complex128 if x.dtype == dtypes.float64 else dtypes.complex64
    return namespace(x).ascontiguousarray(x).view(kind)[..., 0]


def _multiplicity(half: Any, axis: int, count: int) -> Any:
    """Return the share of each of half the frequencies in ``count`` frequencies."""
    extent = half.shape[axis]
    times = np.full(extent, 2.0 / count)
    times[0] = 1.0 / count
    if count % 2 == 0:
        times[-1] = 1.0 / count
    shape = [extent if a == axis else 1 for a in range(half.ndim)]
    return times.reshape(shape).astype(half.dtype)


@composite
def stft(
    signal: Array,
    frame_step: Any,
    window: Array | None = None,
    frame_length: Any = None,
    *,
    onesided: bool = True,
) -> Tensor:
    """Return the transforms [N, frames, frequencies, 2] of frames of ``signal``.

    ``signal`` is [N, L, 1 or 2]. Frames start every ``frame_step`` elements, are as
    long as ``window`` (or ``frame_length``, or the signal) and are multiplied by it.

    Raises:
        ValueError: the window has another length, or the signal is shorter than that.
    """
    step, extent = int(plain_number(frame_step)), signal.shape[1]
    if frame_length is not None:
        size = int(plain_number(frame_length))
    else:
        size = extent if window is None else window.shape[0]
    if window is not None and window.shape[0] != size or size > extent:
        shown = "no window" if window is None else f"a window of {window.shape[0]}"
        raise ValueError(
            f"expected {shown} to fit frames of {size} of a signal of {extent}"
        )
    starts = np.arange(0, extent - size + 1, step)
    frames = take(signal, starts[:, None] + np.arange(size), 1)
    if window is not None:
        frames = frames * reshape(window, (size, 1))
    return dft(frames, onesided=True) if onesided else dft(frames)


@primitive(no_gradient="its operand is a number of elements")
def hann_window(
    size: Any, *, periodic: bool = True, dtype: DType = dtypes.float32
) -> Array:
    """Return a Hann window of ``size`` elements; symmetric unless ``periodic``.

    As in ONNX, a symmetric window of one element is NaN, here and below.
    """
    return _cosines((0.5, 0.5), size, periodic, dtype)


@primitive(no_gradient="its operand is a number of elements")
def hamming_window(
    size: Any, *, periodic: bool = True, dtype: DType = dtypes.float32
) -> Array:
    """Return a Hamming window of ``size`` elements; symmetric unless ``periodic``."""
    return _cosines((25 / 46, 21 / 46), size, periodic, dtype)


@primitive(no_gradient="its operand is a number of elements")
def blackman_window(
    size: Any, *, periodic: bool = True, dtype: DType = dtypes.float32
) -> Array:
    """Return a Blackman window of ``size`` elements; symmetric unless ``periodic``."""
    return _cosines((0.42, 0.5, 0.08), size, periodic, dtype)


def _cosines(
    weights: tuple[float, ...], size: Any, periodic: bool, dtype: DType
) -> Array:
    """Return the sum of ``(-1)**k * weights[k] * cos(k * angle)`` over a period."""
    (count,) = integers(size)
    xp = _library(size)
    turns = count if periodic else count - 1
    if turns == 0:
        return xp.full(count, np.nan).astype(dtype)  # 0 / 0: no turn to divide
    angle = xp.arange(count, dtype=np.float64) * (2.0 * np.pi / turns)
    total = sum((-1) ** k * w * xp.cos(k * angle) for k, w in enumerate(weights))
    if dtype != dtypes.float64:
        total = total.astype(np.float32)  # or an integer would miss the peak by a bit
    return total.astype(dtype)


def _library(size: Any) -> Any:
    """Return the array library for a result whose only operands are sizes."""
    return namespace(size) if hasattr(size, "dtype") else np


@primitive(no_gradient="its operands choose the shape and the bins")
def mel_weight_matrix(
    num_mel_bins: Any,
    dft_length: Any,
    sample_rate: Any,
    lower_edge_hertz: Any,
    upper_edge_hertz: Any,
    *,
    dtype: DType = dtypes.float32,
) -> Array:
    """Return triangular filters from ``dft_length // 2 + 1`` frequencies to mel bins.

    The matrix is [frequencies, num_mel_bins]; the bins are equally far apart between
    the edges, on the scale ``2595 * log10(1 + hertz / 700)``.
    """
    (bins,), (length,), (rate,) = map(integers, (num_mel_bins, dft_length, sample_rate))
    edges = np.array([float(lower_edge_hertz), float(upper_edge_hertz)])
    low, high = 2595.0 * np.log10(1.0 + edges / 700.0)
    mel = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    hertz = 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    corners = np.floor((length + 1) * hertz / rate).astype(np.int64)
    left, peak, right = corners[:-2], corners[1:-1], corners[2:]
    row = np.arange(length // 2 + 1)[:, None]
    rise = np.where(peak == left, 1.0, (row - left) / np.maximum(peak - left, 1))
    fall = (right - row) / np.maximum(right - peak, 1)
    rising = (row >= left) & (row <= peak)
    falling = (row > peak) & (row < right)
    out = np.where(rising, rise, np.where(falling, fall, 0.0))
    return _library(num_mel_bins).asarray(out.astype(dtype))
