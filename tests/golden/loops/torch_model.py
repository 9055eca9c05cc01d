# Imported by burn-import 0 from model.onnx (opset 18, options 898dae2e, golden).
# source sha256 155b86a533210b3f43654f3cec25623ec85dcc194b1eb57e2e70ba61c319775b
# record sha256 fec7a932ecd9d4d9670fdd2b6d1623c1001e8e51e07f5fb0baceea6c89a83b6e
# body   sha256 d33489f95c40fb9571fe1d25b16c7d1721002fd2be0e3011e88697577ebf3ed0
"""Net: x, state, rounds, limit -> last, walk, scanned, listed.

Inputs:
    x       float32[batch, time, 4]
    state   float32[batch, 4]
    rounds  int64[]
    limit   float32[]

Outputs:
    last     float32[batch, 4]
    walk     float32[?, batch, 4]
    scanned  float32[time, batch, 4]
    listed   float32[?, 4]

Weights (20 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import NamedTuple, Self

import torch
from safetensors.torch import load_model
from torch import Tensor, nn

WEIGHTS = Path(__file__).with_name("model.safetensors")


class NetOutput(NamedTuple):
    """What the model returns."""

    last: Tensor
    walk: Tensor
    scanned: Tensor
    listed: Tensor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @classmethod
    def load(cls, weights: str | Path = WEIGHTS) -> Self:
        """Return the model with its trained weights, on the CPU and in eval mode."""
        model = cls()
        load_model(model, weights)
        return model.eval()

    def forward(
        self, x: Tensor, state: Tensor, rounds: Tensor, limit: Tensor
    ) -> NetOutput:
        batch, time = x.shape[:2]
        while True:
            state = state * 0.5
            if not torch.linalg.vector_norm(state) > limit:
                break
        last = state
        walk: list[Tensor] = []
        for i in range(rounds):
            number = torch.tensor(i, dtype=torch.float32, device=x.device)
            last = torch.tanh(self.linear(last) + number)
            walk.append(last)
        walk2 = _stack_rows(walk, (0, 4), dtype=torch.float32)
        scanned: list[Tensor] = []
        for i in range(time):
            state = state + x[:, i]
            scanned.append(state - last)
        mapped: list[Tensor] = []
        for frame in _split_to_sequence(walk2, 1):
            mapped.append(torch.sigmoid(frame.reshape(batch, 4)))
        return NetOutput(
            last,
            walk2,
            _stack_rows(scanned, (0, 4), dtype=torch.float32),
            torch.cat(mapped + [state]),
        )


def _stack_rows(
    rows: list[Tensor], shape: tuple[int, ...], *, dim: int = 0, dtype: torch.dtype
) -> Tensor:
    """Return rows side by side along a new axis; shape is that of a row if none is."""
    if rows:
        return torch.stack(rows, dim=dim)
    axis = dim % (len(shape) + 1)
    return torch.zeros((*shape[:axis], 0, *shape[axis:]), dtype=dtype)


def _split_to_sequence(
    x: Tensor,
    sizes: int | list[int] | tuple[int, ...] = 1,
    *,
    dim: int = 0,
    keepdims: bool = True,
) -> list[Tensor]:
    """Return the pieces of x along dim, of sizes or of one size each."""
    pieces = x.split(sizes if isinstance(sizes, int) else list(sizes), dim=dim)
    return list(pieces) if keepdims else [piece.squeeze(dim) for piece in pieces]
