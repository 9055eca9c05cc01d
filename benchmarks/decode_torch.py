"""The networks of ``decode_networks`` in PyTorch, with caches of a fixed capacity.

New keys and values are written in place by ``index_copy_``, and attention is
``scaled_dot_product_attention`` with a mask, as in PyTorch's gpt-fast.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.decode_networks import Sizes


def tensor(box: Any, dtype: Any) -> Tensor:
    """The value of a box."""
    return torch.from_numpy(box.value.numpy()).to(dtype)


class Cached(nn.Module):  # type: ignore[misc]
    """Attention to a cache."""

    def __init__(self, sizes: Sizes, batch: int, capacity: int, dtype: Any) -> None:
        super().__init__()
        self.sizes = sizes
        shape = (batch, sizes.groups, capacity, sizes.size)
        self.register_buffer("keys", torch.zeros(shape, dtype=dtype))
        self.register_buffer("values", torch.zeros(shape, dtype=dtype))

    def attend(self, q: Any, k: Any, v: Any, places: Tensor, mask: Tensor) -> Tensor:
        """Attention of ``q`` to the cache with new keys and values."""
        self.keys.index_copy_(2, places, k)
        self.values.index_copy_(2, places, v)
        grouped = self.sizes.groups != self.sizes.heads
        out = F.scaled_dot_product_attention(
            q, self.keys, self.values, mask, enable_gqa=grouped
        )
        return out.transpose(1, 2).flatten(2)


class Gpt2Layer(Cached):
    """A layer of GPT-2."""

    def __init__(self, layer: Any, batch: int, capacity: int, dtype: Any) -> None:
        super().__init__(layer.sizes, batch, capacity, dtype)
        for name in ("ln_1", "ln_2", "c_attn", "c_proj", "c_fc", "c_out"):
            for full in (name, f"{name}_bias"):
                value = tensor(getattr(layer, full), dtype)
                value = value.T.contiguous() if value.ndim == 2 else value
                self.register_buffer(full, value)

    def dense(self, x: Tensor, name: str) -> Tensor:
        """A product with a bias."""
        return F.linear(x, getattr(self, name), getattr(self, f"{name}_bias"))

    def norm(self, x: Tensor, name: str) -> Tensor:
        """A layer norm."""
        weight, bias = getattr(self, name), getattr(self, f"{name}_bias")
        return F.layer_norm(x, x.shape[-1:], weight, bias)

    def forward(self, x: Tensor, _: Any, places: Tensor, mask: Tensor) -> Tensor:
        """The result of the layer."""
        batch, count, _ = x.shape
        sizes = self.sizes
        parts = self.dense(self.norm(x, "ln_1"), "c_attn").chunk(3, -1)
        q, k, v = (
            p.view(batch, count, sizes.heads, sizes.size).transpose(1, 2) for p in parts
        )
        x = x + self.dense(self.attend(q, k, v, places, mask), "c_proj")
        y = F.gelu(self.dense(self.norm(x, "ln_2"), "c_fc"), approximate="tanh")
        return x + self.dense(y, "c_out")


class LlamaLayer(Cached):
    """A layer of Llama."""

    def __init__(self, layer: Any, batch: int, capacity: int, dtype: Any) -> None:
        super().__init__(layer.sizes, batch, capacity, dtype)
        for name in ("input_norm", "post_norm", "o_proj", "down_proj"):
            self.register_buffer(name, tensor(getattr(layer, name), dtype))
        for name, parts in (("qkv", "q k v"), ("inner", "gate up")):
            rows = [tensor(getattr(layer, f"{p}_proj"), dtype) for p in parts.split()]
            self.register_buffer(name, torch.cat(rows))

    def forward(self, x: Tensor, angles: Any, places: Tensor, mask: Tensor) -> Tensor:
        """The result of the layer."""
        batch, count, width = x.shape
        sizes = self.sizes
        small = sizes.groups * sizes.size
        y = F.rms_norm(x, (width,), self.input_norm, 1e-5)
        parts = F.linear(y, self.qkv).split((width, small, small), -1)
        q, k, v = (p.view(batch, count, -1, sizes.size).transpose(1, 2) for p in parts)
        y = self.attend(turned(q, *angles), turned(k, *angles), v, places, mask)
        x = x + F.linear(y, self.o_proj)
        y = F.rms_norm(x, (width,), self.post_norm, 1e-5)
        gate, up = F.linear(y, self.inner).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, self.down_proj)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """``x`` with pairs of features turned."""
    first, second = x.float().chunk(2, -1)
    parts = (first * cos - second * sin, first * sin + second * cos)
    return torch.cat(parts, -1).to(x.dtype)


class Model(nn.Module):  # type: ignore[misc]
    """A decoder with the weights of one of ours."""

    def __init__(self, ours: Any, batch: int, capacity: int, dtype: Any) -> None:
        super().__init__()
        self.is_gpt = hasattr(ours, "wpe")
        kind: Any = Gpt2Layer if self.is_gpt else LlamaLayer
        layers = ours.h if self.is_gpt else ours.layers
        table = ours.wte if self.is_gpt else ours.embed_tokens
        self.layers = nn.ModuleList(
            kind(layer, batch, capacity, dtype) for layer in layers
        )
        self.register_buffer("table", tensor(table, dtype))
        self.register_buffer("at", torch.arange(capacity))
        if self.is_gpt:
            self.register_buffer("wpe", tensor(ours.wpe, dtype))
            self.register_buffer("norm", tensor(ours.ln_f, dtype))
            self.register_buffer("norm_bias", tensor(ours.ln_f_bias, dtype))
        else:
            self.register_buffer("norm", tensor(ours.norm, dtype))
            self.register_buffer("rates", tensor(ours.inv_freq, torch.float32))

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        """The logits of ``tokens`` at ``places``, which are behind all before."""
        x = F.embedding(tokens, self.table)
        mask = self.at <= places[:, None]
        angles = None
        if self.is_gpt:
            x = x + self.wpe[places]
        else:
            turns = places[:, None].float() * self.rates
            angles = (turns.cos(), turns.sin())
        for layer in self.layers:
            x = layer(x, angles, places, mask)
        width = x.shape[-1:]
        if self.is_gpt:
            x = F.layer_norm(x, width, self.norm, self.norm_bias)
        else:
            x = F.rms_norm(x, width, self.norm, 1e-5)
        return F.linear(x, self.table)


def next_token(model: Model, token: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
    """The token after ``token`` [batch, 1], and its place."""
    return model(token, place)[:, -1].argmax(-1, keepdim=True), place + 1
