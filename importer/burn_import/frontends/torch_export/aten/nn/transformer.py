"""PyTorch's fused attention and encoder layers for inference."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from burn_import.frontends.torch_export.aten.linalg.matmul import linear
from burn_import.frontends.torch_export.aten.math.logic import is_nonzero
from burn_import.frontends.torch_export.builder import BOOL, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel

#: Meanings of ``mask_type``.
_QUERIES_AND_KEYS, _PADDED_KEYS, _HEADS = 0, 1, 2


@rule("aten._native_multi_head_attention.default")
def native_multi_head_attention(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    embed_dim: int,
    num_head: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    mask: Value | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Value, Value | None]:
    """Return attention with its projections, and its weights.

    The weights are [batch, (heads,) rows, columns]. Nonzero elements of the mask hide
    scores.
    """
    parts = packed_projection(g, (query, key, value), qkv_weight, qkv_bias)
    heads = [
        g.op("Transpose", g.op("Reshape", x, [0, 0, num_head, -1]), perm=(0, 2, 1, 3))
        for x in parts
    ]
    if mask is None and not need_weights:
        output, weights = g.op("Attention", *heads), None
    else:
        hidden = None if mask is None else broadcast_mask(g, mask, mask_type)
        output, weights = explicit_attention(g, heads, embed_dim // num_head, hidden)
    joined = g.op("Reshape", g.op("Transpose", output, perm=(0, 2, 1, 3)), [0, 0, -1])
    out = linear(g, joined, proj_weight, proj_bias)
    if weights is None or not need_weights:
        return out, None
    if average_attn_weights:
        weights = g.op("ReduceMean", weights, [1], keepdims=0)
    return out, weights


def packed_projection(
    g: Builder, operands: Sequence[Value], weight: Value, bias: Value
) -> Sequence[Value]:
    """Return queries, keys and values [batch, rows, width] by one packed weight."""
    if len({x.name for x in operands}) == 1:
        joined = linear(g, operands[0], weight, bias)
        return g.many("Split", 3, joined, axis=-1, num_outputs=3)
    weights = g.many("Split", 3, weight, axis=0, num_outputs=3)
    biases = g.many("Split", 3, bias, axis=0, num_outputs=3)
    return [
        linear(g, x, replace(w, dims=weight.dims), b)
        for x, w, b in zip(operands, weights, biases, strict=True)
    ]


def broadcast_mask(g: Builder, mask: Value, kind: int | None) -> Value:
    """Return the mask of hidden scores, bools [batch, heads, rows, columns]."""
    hidden = is_nonzero(g.at(BOOL), mask)
    if kind == _PADDED_KEYS:
        return g.at(BOOL).op("Unsqueeze", hidden, [1, 2])
    if kind not in (_QUERIES_AND_KEYS, _HEADS):
        raise UnsupportedModel(f"expected mask_type 0, 1 or 2, got {kind}")
    return hidden


def explicit_attention(
    g: Builder, heads: Sequence[Value], size: int, hidden: Value | None
) -> tuple[Value, Value]:
    """Return attention and its weights; a fully masked row is NaN."""
    q, k, v = heads
    scaled = g.op("Mul", q, 1 / math.sqrt(size))
    scores = g.op("MatMul", scaled, g.op("Transpose", k, perm=(0, 1, 3, 2)))
    if hidden is not None:
        scores = g.op("Where", hidden, g.cast(-math.inf), scores)
    weights = g.op("Softmax", scores, axis=-1)
    return g.op("MatMul", weights, v), weights


@dataclass(frozen=True)
class EncoderLayer:
    """The two halves of a layer of ``nn.TransformerEncoder``."""

    g: Builder
    attention: Sequence[Any]
    masks: tuple[Value | None, int | None]
    feed_forward: Sequence[Value]
    activation: str
    epsilon: float

    def norm(self, x: Value, weight: Value, bias: Value) -> Value:
        epsilon = float(self.epsilon)
        operands = x, weight, bias
        return self.g.op("LayerNormalization", *operands, axis=-1, epsilon=epsilon)

    def attend(self, x: Value) -> Value:
        mask, kind = self.masks
        options = (*self.attention, mask, False, True, kind)
        return native_multi_head_attention(self.g, x, x, x, *options)[0]

    def feed(self, x: Value) -> Value:
        w1, b1, w2, b2 = self.feed_forward
        inner = self.g.op(self.activation, linear(self.g, x, w1, b1))
        return linear(self.g, inner, w2, b2)


@rule("aten._transformer_encoder_layer_fwd.default")
def transformer_encoder_layer(
    g: Builder,
    src: Value,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    ffn_weight_1: Value,
    ffn_bias_1: Value,
    ffn_weight_2: Value,
    ffn_bias_2: Value,
    mask: Value | None = None,
    mask_type: int | None = None,
) -> Value:
    """Apply a layer of ``nn.TransformerEncoder``: attention and MLP."""
    parts = (embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
    feed = (ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2)
    name = "Gelu" if use_gelu else "Relu"
    layer = EncoderLayer(g, parts, (mask, mask_type), feed, name, eps)
    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    return encode(layer, src, first, second, norm_first)


def encode(
    layer: EncoderLayer, x: Value, first: Any, second: Any, norm_first: bool
) -> Value:
    """Return the result of a layer with norms before or after its halves."""
    g = layer.g
    if norm_first:
        x = g.op("Add", x, layer.attend(layer.norm(x, *first)))
        return g.op("Add", x, layer.feed(layer.norm(x, *second)))
    x = layer.norm(g.op("Add", x, layer.attend(x)), *first)
    return layer.norm(g.op("Add", x, layer.feed(x)), *second)
