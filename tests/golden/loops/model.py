# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 155b86a533210b3f43654f3cec25623ec85dcc194b1eb57e2e70ba61c319775b
# record sha256 fec7a932ecd9d4d9670fdd2b6d1623c1001e8e51e07f5fb0baceea6c89a83b6e
# body   sha256 8238d1162f7952b9d610cde15c4c0040aaaac795cf1a37a9ca441b93f98fe5f5
"""Net: x, state, rounds, limit -> last, walk, scanned, listed.

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
from typing import NamedTuple

import burn
from burn import Tensor, nn, ops

burn.require_version("0.1.0")


class NetOutput(NamedTuple):
    """What the model returns."""

    last: Tensor
    walk: Tensor
    scanned: Tensor
    listed: Tensor


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @nn.check_inputs(
        x="float32[batch, time, 4]",
        state="float32[batch, 4]",
        rounds="int64[]",
        limit="float32[]",
    )
    def __call__(
        self, x: Tensor, state: Tensor, rounds: Tensor, limit: Tensor
    ) -> NetOutput:
        batch, time = x.shape[:2]
        while True:
            state = state * 0.5
            if not ops.reduce_l2(state) > limit:
                break
        last = state
        walk: list[Tensor] = []
        for i in range(rounds):
            last = ops.tanh(self.linear(last) + ops.array(i, dtype=burn.float32))
            walk.append(last)
        walk2 = ops.stack_rows(walk, (0, 4))
        scanned: list[Tensor] = []
        for i in range(time):
            state = state + x[:, i]
            scanned.append(state - last)
        mapped: list[Tensor] = []
        for frame in ops.split_to_sequence(walk2):
            mapped.append(ops.sigmoid(frame.reshape(batch, 4)))
        return NetOutput(
            last, walk2, ops.stack_rows(scanned, (0, 4)), ops.concat(mapped + [state])
        )
