"""A small decoder whose cache grows by a token in each call."""

from typing import Any

import numpy as np

import burn
from burn import Parameter, Tensor, nn, ops
from tests.runtime.onednn import normal

WORDS, HEADS, GROUPS, SIZE = 17, 4, 2, 8


def weight(*shape: int, seed: int) -> Parameter:
    """A parameter of random numbers."""
    return Parameter(burn.tensor(normal(*shape, seed=seed) * shape[-1] ** -0.5))


class Layer(nn.Module):
    """Attention of grouped heads, rotated by position, and a gated layer."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        width, small = HEADS * SIZE, GROUPS * SIZE
        self.norm, self.last = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query = weight(width, width, seed=seed)
        self.key, self.value = (weight(small, width, seed=seed + n) for n in (1, 2))
        self.out = weight(width, width, seed=seed + 3)
        self.gate, self.up = (weight(24, width, seed=seed + n) for n in (4, 5))
        self.down = weight(width, 24, seed=seed + 6)

    def __call__(self, x: Tensor, angles: Any, past: Any, mask: Tensor) -> Any:
        y = self.norm(x)
        query, key, value = (
            ops.split_heads(ops.linear(y, w), heads)
            for w, heads in (
                (self.query, HEADS),
                (self.key, GROUPS),
                (self.value, GROUPS),
            )
        )
        key = ops.concat([past[0], ops.rotary_embedding(key, *angles)], axis=-2)
        value = ops.concat([past[1], value], axis=-2)
        query = ops.rotary_embedding(query, *angles)
        y = ops.merge_heads(ops.attention(query, key, value, mask))
        x = x + ops.linear(y, self.out)
        y = self.last(x)
        y = ops.silu(ops.linear(y, self.gate)) * ops.linear(y, self.up)
        return x + ops.linear(y, self.down), key, value


class Growing(nn.Module):
    """Two layers, with inputs and results as exporters write them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = weight(WORDS, HEADS * SIZE, seed=0)
        rates = 100.0 ** (-np.arange(SIZE // 2) / 4)
        self.rates = burn.Buffer(burn.tensor(rates.astype(np.float32)))
        self.layers = nn.ModuleList(Layer(seed) for seed in (10, 20))

    @nn.check_inputs(
        input_ids="int64[batch, seq]",
        attention_mask="int64[batch, total]",
        position_ids="int64[batch, seq]",
        past_key_values_0_key="float32[batch, 2, past, 8]",
        past_key_values_0_value="float32[batch, 2, past, 8]",
        past_key_values_1_key="float32[batch, 2, past, 8]",
        past_key_values_1_value="float32[batch, 2, past, 8]",
    )
    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor,
        past_key_values_0_key: Tensor,
        past_key_values_0_value: Tensor,
        past_key_values_1_key: Tensor,
        past_key_values_1_value: Tensor,
    ) -> dict[str, Tensor]:
        first = (past_key_values_0_key, past_key_values_0_value)
        second = (past_key_values_1_key, past_key_values_1_value)
        count, past = input_ids.shape[1], first[0].shape[2]
        rows = (ops.arange(count) + past).unsqueeze((0, 1, 3))
        seen = (attention_mask > 0).unsqueeze((1, 2))
        mask = ops.where((ops.arange(past + count) <= rows) & seen, 0.0, -3.4028235e38)
        turns = self.positions(position_ids, past).unsqueeze(2).cast(burn.float32)
        turns = turns * self.rates
        angles = (ops.cos(turns), ops.sin(turns))
        x = ops.take(self.table, input_ids)
        x, key_0, value_0 = self.layers[0](x, angles, first, mask)
        x, key_1, value_1 = self.layers[1](x, angles, second, mask)
        # Not in the order of the inputs: names tell.
        return {
            "logits": ops.linear(x, self.table),
            "present_1_key": key_1,
            "present_0_key": key_0,
            "present_1_value": value_1,
            "present_0_value": value_0,
        }

    def positions(self, given: Tensor, past: int) -> Tensor:
        """The positions that count."""
        return given


class Counting(Growing):
    """A decoder that counts positions by the extent of the past."""

    def positions(self, given: Tensor, past: int) -> Tensor:
        return ops.arange(given.shape[1]).unsqueeze(0) + past


def grown(model: Any, tokens: Any, chunks: tuple[int, ...]) -> list[Any]:
    """The logits of chunks of ``tokens``, each with a past that grew."""
    batch, at, logits = len(tokens), 0, []
    names = [f"{n}_{part}" for n in (0, 1) for part in ("key", "value")]
    past = {name: np.zeros((batch, GROUPS, 0, SIZE), np.float32) for name in names}
    for count in chunks:
        positions = np.tile(np.arange(at, at + count), (batch, 1))
        results = model(
            burn.tensor(tokens[:, at : at + count]),
            burn.tensor(np.ones((batch, at + count), np.int64)),
            burn.tensor(positions),
            *(burn.tensor(past[name]) for name in names),
        )
        past = {name: results[f"present_{name}"].numpy() for name in names}
        logits.append(results["logits"].numpy())
        at += count
    return logits
