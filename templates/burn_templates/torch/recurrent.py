"""Helpers for recurrent operators in ONNX's layout, which no layer of PyTorch has."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def _activations(
    names: tuple[str, ...], default: tuple[str, ...], direction: int
) -> list[Callable[[Tensor], Tensor]]:
    """Return the activation functions of one direction."""
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "relu": F.relu,
        "softsign": F.softsign,
        "softplus": F.softplus,
        "elu": F.elu,
        "leakyrelu": F.leaky_relu,
        "thresholdedrelu": lambda x: F.threshold(x, 1.0, 0.0),
        "affine": lambda x: x,
        "scaledtanh": torch.tanh,
        "hardsigmoid": lambda x: (x * 0.2 + 0.5).clamp(0, 1),
    }
    count = len(default)
    chosen = (names or default * 2)[direction * count : (direction + 1) * count]
    return [functions[name.lower()] for name in chosen]


def _scanned(
    x: Tensor,
    starts: list[Tensor | None],
    count: int,
    hidden: int,
    seq_lens: Tensor | None,
    direction: str,
    layout: int,
    step: Callable[[int, Tensor, list[Tensor]], list[Tensor]],
) -> tuple[Tensor, ...]:
    """Return all outputs of a recurrence, [time, directions, batch, hidden], and ends.

    Where a sequence is over, its state stays and its output is 0.
    """
    x = x.transpose(0, 1) if layout else x
    time, batch = x.shape[:2]
    starts = [s.transpose(0, 1) if layout and s is not None else s for s in starts]
    zero = x.new_zeros(batch, hidden)
    outputs, ends = [], []
    for number in range(count):
        order = range(time)
        if direction == "reverse" or number == 1:
            order = range(time - 1, -1, -1)
        state = [zero if start is None else start[number] for start in starts]
        steps = [zero] * time
        for t in order:
            new = step(number, x[t], state)
            steps[t] = new[0]
            if seq_lens is not None:
                alive = (t < seq_lens).unsqueeze(1)
                steps[t] = torch.where(alive, new[0], zero)
                new = [
                    torch.where(alive, *both) for both in zip(new, state, strict=True)
                ]
            state = new
        outputs.append(torch.stack(steps))
        ends.append(state)
    every = torch.stack(outputs, dim=1)
    last = [torch.stack(list(parts)) for parts in zip(*ends, strict=True)]
    if layout:
        return every.permute(2, 0, 1, 3), *(part.transpose(0, 1) for part in last)
    return every, *last


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
    activations: tuple[str, ...] = (),
    clip: float | None = None,
    input_forget: bool = False,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Return all outputs, the last output and the last cell of an LSTM."""
    limit = clip or float("inf")

    def step(number: int, x: Tensor, state: list[Tensor]) -> list[Tensor]:
        h, c = state
        default = ("Sigmoid", "Tanh", "Tanh")
        gate, squash, show = _activations(activations, default, number)
        raw = x @ w[number].mT + h @ r[number].mT
        if b is not None:
            both = b[number].chunk(2)
            raw = raw + (both[0] + both[1])
        i, o, f, g = raw.chunk(4, dim=-1)
        p = None if peephole is None else peephole[number].chunk(3)
        if p is not None:
            i, f = i + p[0] * c, f + p[2] * c
        i = gate(i.clamp(-limit, limit))
        f = 1.0 - i if input_forget else gate(f.clamp(-limit, limit))
        c = f * c + i * squash(g.clamp(-limit, limit))
        o = o if p is None else o + p[1] * c
        return [gate(o.clamp(-limit, limit)) * show(c), c]

    sizes = w.shape[0], r.shape[-1]
    return _scanned(x, [h0, c0], *sizes, seq_lens, direction, layout, step)


def _gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    *,
    b: Tensor | None = None,
    h0: Tensor | None = None,
    seq_lens: Tensor | None = None,
    direction: str = "forward",
    activations: tuple[str, ...] = (),
    clip: float | None = None,
    linear_before_reset: bool = False,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Return all outputs and the last one of a gated recurrent unit."""
    limit, hidden = clip or float("inf"), r.shape[-1]

    def step(number: int, x: Tensor, state: list[Tensor]) -> list[Tensor]:
        (h,) = state
        gate, squash = _activations(activations, ("Sigmoid", "Tanh"), number)
        biases = x.new_zeros(6 * hidden) if b is None else b[number]
        first, second = biases.chunk(2)
        inputs = x @ w[number].mT + first
        gates, new = r[number][: 2 * hidden], r[number][2 * hidden :]
        raw = inputs[:, : 2 * hidden] + h @ gates.mT + second[: 2 * hidden]
        update, reset = gate(raw.clamp(-limit, limit)).chunk(2, dim=-1)
        if linear_before_reset:
            recurrent = reset * (h @ new.mT + second[2 * hidden :])
        else:
            recurrent = (reset * h) @ new.mT + second[2 * hidden :]
        out = squash((inputs[:, 2 * hidden :] + recurrent).clamp(-limit, limit))
        return [(1.0 - update) * out + update * h]

    sizes = w.shape[0], hidden
    return _scanned(x, [h0], *sizes, seq_lens, direction, layout, step)


def _rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    *,
    b: Tensor | None = None,
    h0: Tensor | None = None,
    seq_lens: Tensor | None = None,
    direction: str = "forward",
    activations: tuple[str, ...] = (),
    clip: float | None = None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Return all outputs and the last one of a plain recurrent operator."""
    limit = clip or float("inf")

    def step(number: int, x: Tensor, state: list[Tensor]) -> list[Tensor]:
        (squash,) = _activations(activations, ("Tanh",), number)
        raw = x @ w[number].mT + state[0] @ r[number].mT
        if b is not None:
            both = b[number].chunk(2)
            raw = raw + (both[0] + both[1])
        return [squash(raw.clamp(-limit, limit))]

    sizes = w.shape[0], r.shape[-1]
    return _scanned(x, [h0], *sizes, seq_lens, direction, layout, step)
