"""Short-time Fourier transforms and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, N, c64, case, f32

N_FFT, HOP = 8, 3
COMPLEX = np.complex64


def framed(x: Array, window: Array) -> Array:
    """Return the frames [..., N_FFT, count] of signals, times a window."""
    before = (N_FFT - len(window)) // 2
    wide = np.pad(window, (before, N_FFT - len(window) - before))
    count = (x.shape[-1] - N_FFT) // HOP + 1
    frames = [x[..., i * HOP : i * HOP + N_FFT] * wide for i in range(count)]
    return np.stack(frames, -1)


def spectrum(half: bool, norm: Any = None) -> Any:
    """Return the transforms of frames."""

    def run(x: Array, window: Array) -> Array:
        frames = framed(x, window)
        transform = np.fft.rfft if half else np.fft.fft
        return transform(frames, axis=-2, norm=norm).astype(COMPLEX)

    return run


def centered(x: Array, window: Array) -> Any:
    wide = np.pad(x, [(0, 0), (N_FFT // 2, N_FFT // 2)], "reflect")
    return spectrum(True)(wide, window)


def as_pairs(x: Array, window: Array) -> Array:
    result = spectrum(True)(x, window)
    return np.stack([result.real, result.imag], -1)


def signal(center: bool, length: int | None = None, norm: Any = "backward") -> Any:
    """Return the signals of frames, divided by the sum of squared windows."""

    def run(x: Array, window: Array) -> Array:
        frames = np.fft.irfft(x, N_FFT, axis=-2, norm=norm)
        before = (N_FFT - len(window)) // 2
        wide = np.pad(window, (before, N_FFT - len(window) - before))
        total = N_FFT + HOP * (x.shape[-1] - 1)
        out, share = np.zeros((*x.shape[:-2], total)), np.zeros(total)
        for i in range(x.shape[-1]):
            index = slice(i * HOP, i * HOP + N_FFT)
            out[..., index] += frames[..., i] * wide
            share[index] += wide**2
        start = N_FFT // 2 if center else 0
        end = total - start if length is None else start + length
        result = out[..., start:end] / share[start:end]
        missing = 0 if length is None else length - result.shape[-1]
        widths = [(0, 0)] * (result.ndim - 1) + [(0, missing)]
        return np.pad(result, widths).astype(np.float32)

    return run


WINDOW = f32(N_FFT, low=0.5)
SHORT = f32(6, low=0.5)
OPTIONS: dict[str, Any] = {"n_fft": N_FFT, "hop_length": HOP}

CASES: tuple[Case, ...] = (
    case(
        "stft.default",
        spectrum(True),
        self=f32("n", 20),
        **OPTIONS,
        win_length=None,
        window=WINDOW,
        return_complex=True,
    ),
    case(
        "stft.default",
        spectrum(True, "ortho"),
        label="alone",
        self=f32(21),
        **OPTIONS,
        win_length=6,
        window=SHORT,
        normalized=True,
        return_complex=True,
    ),
    case(
        "stft.default",
        spectrum(False),
        label="whole",
        self=f32("n", 20),
        **OPTIONS,
        window=WINDOW,
        onesided=False,
        return_complex=True,
    ),
    case(
        "stft.default",
        spectrum(False),
        label="complex",
        self=c64("n", 20),
        **OPTIONS,
        window=WINDOW,
        return_complex=True,
    ),
    case(
        "stft.default",
        as_pairs,
        label="pairs",
        self=f32("n", 20),
        **OPTIONS,
        window=WINDOW,
        return_complex=False,
    ),
    case(
        "stft.center",
        centered,
        self=f32("n", 20),
        **OPTIONS,
        window=WINDOW,
        center=True,
        pad_mode="reflect",
        return_complex=True,
    ),
    case(
        "istft.default",
        signal(True),
        tolerance=1e-4,
        self=c64("n", 5, 7),
        **OPTIONS,
        window=WINDOW,
    ),
    case(
        "istft.default",
        lambda x, window: signal(True, len(x))(x, window),
        label="computed_length",
        tolerance=1e-4,
        self=c64("n", 5, 7),
        **OPTIONS,
        window=WINDOW,
        length=N,
    ),
    case(
        "istft.default",
        signal(False, norm="ortho"),
        label="alone",
        tolerance=1e-4,
        self=c64(5, 7),
        **OPTIONS,
        window=WINDOW,
        center=False,
        normalized=True,
    ),
    case(
        "istft.default",
        signal(True, 30),
        label="longer",
        tolerance=1e-4,
        self=c64("n", 8, 7),
        **OPTIONS,
        window=WINDOW,
        onesided=False,
        length=30,
    ),
    case(
        "istft.default",
        signal(True, 5),
        label="shorter",
        tolerance=1e-4,
        self=c64(2, 5, "n"),
        **OPTIONS,
        win_length=6,
        window=SHORT,
        length=5,
    ),
)
