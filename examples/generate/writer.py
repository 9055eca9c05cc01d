"""A small language model that is trained on the manual.

It takes characters with the keys and values of those before them, and returns the keys
and values with the new ones behind. These are the inputs and outputs of decoders that
transformers and optimum export, so that an imported one takes its place.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, ops, optim, train

SYMBOLS, WIDTH, HEADS, LENGTH, BATCH = 128, 128, 4, 128, 8
SIZE = WIDTH // HEADS


class Past(NamedTuple):
    """Keys and values of characters that were read."""

    key: Tensor
    value: Tensor


class Layer(nn.Module):
    """Attention to the characters before, and a layer for each character."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def __call__(
        self, x: Tensor, angles: tuple[Tensor, Tensor], past: Past, mask: Tensor
    ) -> tuple[Tensor, Past]:
        joined = ops.split(self.query_key_value(self.norm_1(x)), [WIDTH] * 3, -1)
        query, key, value = (ops.split_heads(part, HEADS) for part in joined)
        query, key = (ops.rotary_embedding(part, *angles) for part in (query, key))
        now = Past(
            ops.concat([past.key, key], axis=2), ops.concat([past.value, value], axis=2)
        )
        x = x + self.out(ops.merge_heads(ops.attention(query, *now, mask)))
        return x + self.down(ops.gelu(self.up(self.norm_2(x)))), now


class Writer(nn.Module):
    """Two layers between a table of characters and their logits."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(SYMBOLS, WIDTH)
        rates = 1000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2))
        self.rates = burn.Buffer(burn.tensor(rates.astype(np.float32)))
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS)

    @nn.check_inputs(
        input_ids="int64[batch, count]",
        attention_mask="int64[batch, total]",
        position_ids="int64[batch, count]",
        past_0_key="float32[batch, 4, before, 32]",
        past_0_value="float32[batch, 4, before, 32]",
        past_1_key="float32[batch, 4, before, 32]",
        past_1_value="float32[batch, 4, before, 32]",
    )
    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor,
        past_0_key: Tensor,
        past_0_value: Tensor,
        past_1_key: Tensor,
        past_1_value: Tensor,
    ) -> dict[str, Tensor]:
        pasts = Past(past_0_key, past_0_value), Past(past_1_key, past_1_value)
        count, before = input_ids.shape[1], past_0_key.shape[2]
        rows = (ops.arange(count) + before).unsqueeze((0, 1, 3))
        seen = (attention_mask > 0).unsqueeze((1, 2))
        mask = ops.where((ops.arange(before + count) <= rows) & seen, 0.0, -1e30)
        turns = position_ids.unsqueeze(2).cast(burn.float32) * self.rates
        angles = ops.cos(turns), ops.sin(turns)
        x = self.table(input_ids)
        results = {}
        for number, (layer, past) in enumerate(zip(self.layers, pasts, strict=True)):
            x, now = layer(x, angles, past, mask)
            results[f"present_{number}_key"] = now.key
            results[f"present_{number}_value"] = now.value
        return {"logits": self.head(self.norm(x)), **results}


def empty_inputs(batch: int, count: int, before: int = 0) -> list[Tensor]:
    """Return the inputs behind the characters: a mask, positions, zeros as the past."""
    mask = np.ones((batch, before + count), np.int64)
    positions = np.tile(np.arange(before, before + count), (batch, 1))
    past = np.zeros((batch, HEADS, before, SIZE), np.float32)
    return [burn.tensor(array) for array in (mask, positions, *[past] * 4)]


def batches(text: NDArray[np.int64], steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield parts of the text, and the same parts one character later."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        starts = rng.integers(0, len(text) - LENGTH - 1, BATCH)
        rows = text[starts[:, None] + np.arange(LENGTH + 1)]
        yield burn.tensor(rows[:, :-1]), burn.tensor(rows[:, 1:])


def write_weights(path: Path, text: NDArray[np.int64], steps: int) -> float:
    """Train a model on a text, and write its weights; return its last losses' mean."""
    nn.init.seed(0)
    model = Writer()
    model.to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=3e-3, clip_norm=1.0)

    @train.step(model, opt, optim.cosine(opt, steps, warmup=20))
    def step(ids: Tensor, following: Tensor) -> Tensor:
        logits = model(ids, *empty_inputs(BATCH, LENGTH))["logits"]
        return loss.cross_entropy(logits.flatten(0, 1), following.flatten())

    losses = [step(*batch).item() for batch in batches(text, steps)]
    model.save_weights(path)
    return float(np.mean(losses[-20:]))
