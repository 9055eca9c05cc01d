"""Helpers for Fourier transforms."""

from __future__ import annotations

import torch
from torch import Tensor


def _dft(
    x: Tensor,
    *,
    length: int | None = None,
    dim: int = -2,
    inverse: bool = False,
    onesided: bool = False,
) -> Tensor:
    """Return the discrete Fourier transform of [..., 1 or 2] along dim."""
    axis = dim % x.ndim
    if x.shape[-1] == 2:
        signal = torch.view_as_complex(x.contiguous())
    else:
        signal = x.squeeze(-1)
    if onesided and inverse:
        return torch.fft.irfft(signal, length, axis).unsqueeze(-1)
    if onesided:
        out = torch.fft.rfft(signal, length, axis)
    else:
        transform = torch.fft.ifft if inverse else torch.fft.fft
        out = transform(signal, length, axis)
    return torch.view_as_real(out)


def _stft(
    signal: Tensor,
    step: int,
    *,
    window: Tensor | None = None,
    length: int | None = None,
    onesided: bool = True,
) -> Tensor:
    """Return the transforms [N, frames, frequencies, 2] of frames of [N, L, 1 or 2]."""
    if length is None:
        length = signal.shape[1] if window is None else window.shape[0]
    frames = signal.unfold(1, length, step).transpose(2, 3)
    if window is not None:
        frames = frames * window.unsqueeze(1)
    return _dft(frames, onesided=onesided)
