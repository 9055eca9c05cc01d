"""GPT-2 and Llama with caches of keys and values, as exports of them are imported.

Weights are random. Everything is float16 but for angles, as with ``--dtype float16``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import burn
from burn import Tensor, nn, ops

HALF = burn.float16
HIDDEN = -65500.0
#: So many numbers are drawn, and repeated: no two rows are equal.
_NUMBERS = 1_000_003


@dataclass(frozen=True)
class Sizes:
    """The extents of a decoder."""

    words: int
    layers: int
    heads: int
    groups: int
    size: int
    inner: int
    places: int = 0

    @property
    def width(self) -> int:
        """The features of a token."""
        return self.heads * self.size


GPT2 = Sizes(50257, 12, 12, 12, 64, 3072, 1024)
#: Llama 3.2 1B.
LLAMA = Sizes(128256, 16, 32, 8, 64, 8192)


def weight(*shape: int, scale: float | None = None) -> Any:
    """A random float16 parameter, such that products keep the size of numbers."""
    values = np.random.default_rng(shape).standard_normal(_NUMBERS, np.float32)
    values *= shape[-1] ** -0.5 if scale is None else scale
    return burn.Parameter(burn.tensor(np.resize(values.astype(np.float16), shape)))


def vector(size: int, value: float) -> Any:
    """A float16 parameter of equal numbers."""
    return burn.Parameter(burn.tensor(np.full(size, value, np.float16)))


def seen_by(attention_mask: Tensor, count: int, past: int) -> Tensor:
    """Return the mask to add to scores, as PyTorch's exporter writes it."""
    at = ops.arange(past + count).unsqueeze((0, 1, 2))
    row = (ops.arange(count) + past).unsqueeze((0, 1, 3))
    mask = attention_mask.cast(burn.bool_)[:, : past + count].unsqueeze((1, 2))
    zero, low = (ops.array(value, dtype=HALF) for value in (0.0, HIDDEN))
    return ops.where((at <= row) & mask, zero, low)


class Gpt2Layer(nn.Module):
    """A layer of GPT-2, whose weights are ``[inputs, outputs]``."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, inner = sizes.width, sizes.inner
        self.sizes = sizes
        self.ln_1, self.ln_1_bias = vector(width, 1.0), vector(width, 0.1)
        self.ln_2, self.ln_2_bias = vector(width, 1.0), vector(width, 0.1)
        for name, rows, columns in (
            ("c_attn", width, 3 * width),
            ("c_proj", width, width),
            ("c_fc", width, inner),
            ("c_out", inner, width),
        ):
            setattr(self, name, weight(rows, columns, scale=rows**-0.5 / 2))
            setattr(self, f"{name}_bias", vector(columns, 0.01))

    def dense(self, x: Tensor, name: str) -> Tensor:
        """A product with a bias."""
        batch, count, width = x.shape
        w, bias = getattr(self, name), getattr(self, f"{name}_bias")
        x = x.reshape(-1, width) @ w + bias
        return x.reshape(batch, count, -1)

    def __call__(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Any:
        batch, count, width = x.shape
        heads, size = self.sizes.heads, self.sizes.size
        y = self.dense(ops.layer_norm(x, self.ln_1, self.ln_1_bias), "c_attn")
        query, new_key, new_value = (
            part.reshape(batch, count, heads, size).transpose(1, 2)
            for part in ops.chunk(y, count=3, axis=2)
        )
        key = ops.concat([key, new_key], axis=-2)
        value = ops.concat([value, new_value], axis=-2)
        y = ops.attention(query, key, value, mask, scale=size**-0.5)
        y = y.transpose(1, 2).reshape(batch, count, width)
        x = self.dense(y, "c_proj") + x
        y = self.dense(ops.layer_norm(x, self.ln_2, self.ln_2_bias), "c_fc")
        y = self.dense(ops.gelu(y, approximate="tanh"), "c_out")
        return x + y, key, value


class Gpt2(nn.Module):
    """GPT-2 with a tied head."""

    def __init__(self, sizes: Sizes = GPT2) -> None:
        super().__init__()
        width = sizes.width
        self.wte = weight(sizes.words, width)
        self.wpe = weight(sizes.places, width)
        self.h = nn.ModuleList(Gpt2Layer(sizes) for _ in range(sizes.layers))
        self.ln_f, self.ln_f_bias = vector(width, 1.0), vector(width, 0.1)

    def run(self, tokens: Tensor, mask: Tensor, positions: Tensor, past: Any) -> Any:
        """Logits, and keys and values by layer."""
        x = ops.take(self.wte, tokens) + ops.take(self.wpe, positions)
        seen = seen_by(mask, tokens.shape[1], past[0].shape[2])
        present: list[Tensor] = []
        for number, layer in enumerate(self.h):
            before = past[2 * number : 2 * number + 2]
            x, key, value = layer(x, before[0], before[1], seen)
            present += [key, value]
        x = ops.layer_norm(x, self.ln_f, self.ln_f_bias)
        return (ops.linear(x, self.wte), *present)


class LlamaLayer(nn.Module):
    """A layer of Llama."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, inner, small = sizes.width, sizes.inner, sizes.groups * sizes.size
        self.sizes = sizes
        self.input_norm, self.post_norm = vector(width, 1.0), vector(width, 1.0)
        self.q_proj, self.o_proj = weight(width, width), weight(width, width)
        self.k_proj, self.v_proj = weight(small, width), weight(small, width)
        self.gate_proj, self.up_proj = weight(inner, width), weight(inner, width)
        self.down_proj = weight(width, inner)

    def __call__(self, x: Tensor, angles: Any, key: Any, value: Any, mask: Any) -> Any:
        batch, count, width = x.shape
        sizes = self.sizes
        y = ops.rms_norm(x, self.input_norm, epsilon=1e-5)
        query, new_key, new_value = (
            ops.linear(y, w).reshape(batch, count, heads, sizes.size).transpose(1, 2)
            for w, heads in (
                (self.q_proj, sizes.heads),
                (self.k_proj, sizes.groups),
                (self.v_proj, sizes.groups),
            )
        )
        key = ops.concat([key, ops.rotary_embedding(new_key, *angles)], axis=-2)
        value = ops.concat([value, new_value], axis=-2)
        query = ops.rotary_embedding(query, *angles)
        y = ops.attention(query, key, value, mask, scale=sizes.size**-0.5)
        x = x + ops.linear(y.transpose(1, 2).flatten(2), self.o_proj)
        y = ops.rms_norm(x, self.post_norm, epsilon=1e-5)
        y = ops.silu(ops.linear(y, self.gate_proj)) * ops.linear(y, self.up_proj)
        return x + ops.linear(y, self.down_proj), key, value


class Llama(nn.Module):
    """Llama with a tied head."""

    def __init__(self, sizes: Sizes = LLAMA) -> None:
        super().__init__()
        self.embed_tokens = weight(sizes.words, sizes.width)
        self.layers = nn.ModuleList(LlamaLayer(sizes) for _ in range(sizes.layers))
        self.norm = vector(sizes.width, 1.0)
        rates = 500000.0 ** (-np.arange(0, sizes.size, 2) / sizes.size)
        self.inv_freq = burn.Buffer(burn.tensor(rates.astype(np.float32)))

    def run(self, tokens: Tensor, mask: Tensor, positions: Tensor, past: Any) -> Any:
        """Logits, and keys and values by layer."""
        x = ops.take(self.embed_tokens, tokens)
        seen = seen_by(mask, tokens.shape[1], past[0].shape[2])
        turns = positions.unsqueeze(2).cast(burn.float32) * self.inv_freq
        angles = (ops.cos(turns).cast(HALF), ops.sin(turns).cast(HALF))
        present: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            before = past[2 * number : 2 * number + 2]
            x, key, value = layer(x, angles, before[0], before[1], seen)
            present += [key, value]
        x = ops.rms_norm(x, self.norm, epsilon=1e-5)
        return (ops.linear(x, self.embed_tokens), *present)


def with_cache(kind: Callable[[Sizes], Any], sizes: Sizes) -> Any:
    """A module with the inputs of an imported decoder."""
    names = [
        f"past_{part}_{n}" for n in range(sizes.layers) for part in ("key", "value")
    ]
    past = f"float16[batch, {sizes.groups}, past, {sizes.size}]"
    types = {
        "input_ids": "int64[batch, seq]",
        "attention_mask": "int64[batch, total]",
        "position_ids": "int64[batch, seq]",
        **dict.fromkeys(names, past),
    }
    body = f"def call(self, {', '.join(types)}): return self.run("
    body += f"input_ids, attention_mask, position_ids, [{', '.join(names)}])"
    scope: dict[str, Any] = {}
    exec(body, scope)  # noqa: S102  the names are ours
    call = nn.check_inputs(**types)(scope["call"])
    return type(kind.__name__, (kind,), {"__call__": call})(sizes)  # type: ignore[arg-type]


def numbers(module: Any) -> int:
    """The bytes of weights that a step reads: all but a table of positions."""
    table = getattr(module, "wpe", None)
    total = sum(2 * int(np.prod(box.shape)) for _, box in module.boxes())
    return total - (0 if table is None else 2 * int(np.prod(table.shape)))
