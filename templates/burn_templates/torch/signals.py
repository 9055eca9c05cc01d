"""Helpers for Fourier transforms and recurrent operators."""

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


def _lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    *,
    b: Tensor | None = None,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
    seq_lens: Tensor | None = None,
    peephole: Tensor | None = None,
    direction: str = "forward",
) -> tuple[Tensor, Tensor, Tensor]:
    """Return all outputs, the last output and cell of an LSTM in ONNX's layout."""
    count, hidden = r.shape[0], r.shape[-1]
    time, batch = x.shape[:2]
    lengths = x.new_full((batch,), time) if seq_lens is None else seq_lens.to(x.device)
    outputs, lasts, cells = [], [], []
    for number in range(count):
        reverse = direction == "reverse" or number == 1
        h = x.new_zeros(batch, hidden) if h0 is None else h0[number]
        c = x.new_zeros(batch, hidden) if c0 is None else c0[number]
        p = None if peephole is None else peephole[number].chunk(3)
        steps: list[Tensor] = [x.new_zeros(batch, hidden)] * time
        for t in reversed(range(time)) if reverse else range(time):
            gates = x[t] @ w[number].mT + h @ r[number].mT
            if b is not None:
                gates = gates + b[number, : 4 * hidden] + b[number, 4 * hidden :]
            i, o, f, g = gates.chunk(4, dim=-1)
            if p is not None:
                i, f = i + p[0] * c, f + p[2] * c
            cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            o = o if p is None else o + p[1] * cell
            state = torch.sigmoid(o) * torch.tanh(cell)
            alive = (t < lengths).unsqueeze(1)
            h, c = torch.where(alive, state, h), torch.where(alive, cell, c)
            steps[t] = torch.where(alive, state, torch.zeros_like(state))
        outputs.append(torch.stack(steps))
        lasts.append(h)
        cells.append(c)
    return torch.stack(outputs, 1), torch.stack(lasts), torch.stack(cells)
