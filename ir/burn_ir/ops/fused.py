"""Operators of the domain ``burn``, by which passes replace several of ONNX."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from burn import ops
from burn.dtypes import bool_
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import Floating, expect_float
from burn_ir.ops.matmul import check_inner
from burn_ir.ops.norm import by_kept_statistics, check_vectors
from burn_ir.ops.options import non_default, shortest
from burn_ir.ops.support import are_unequal_numbers


@operator
class Linear(Op, onnx="Linear", versions=(1,), domain="burn"):
    """``x @ weight.T + bias``: ``x[..., in]``, ``weight[out, in]``, ``bias[out]``."""

    def infer(self, x: Type, weight: Type, bias: Type | None = None) -> Type:
        dtype = same_dtype(*(t for t in (x, weight, bias) if t is not None))
        if weight.rank != 2 or (bias is not None and bias.rank != 1):
            shown = weight.name if bias is None else f"{weight.name} and {bias.name}"
            raise InvalidOperand(f"expected a matrix and a vector, got {shown}")
        outer, inner = weight.dims
        if bias is not None:
            check_inner(bias, weight, bias.dims[0], outer)
        if x.shape is None:
            return Type(dtype, None)
        if not x.shape:
            raise InvalidOperand(f"expected an operand of rank 1 or more, got {x.name}")
        check_inner(x, weight, x.shape[-1], inner)
        return Type(dtype, (*x.shape[:-1], outer))

    def lower(self, x: Value, weight: Value, bias: Value = None) -> Value:
        return ops.linear(x, weight) if bias is None else ops.linear(x, weight, bias)

    def layer(self, x: Type, weight: Type, bias: Type | None = None) -> Layer | None:
        if weight.known is None or (bias is not None and bias.known is None):
            return None
        outer, inner = weight.known.shape
        if bias is None:
            return Layer("Linear", (inner, outer), {"bias": False}, {"weight": 1})
        return Layer("Linear", (inner, outer), {}, {"weight": 1, "bias": 2})


@operator
class Conv1D(Op, onnx="Conv1D", versions=(1,), domain="burn"):
    """``x @ weight + bias``: ``x[..., in]``, ``weight[in, out]``, ``bias[out]``.

    A :class:`Linear` with a transposed weight, as in GPT-2.
    """

    def infer(self, x: Type, weight: Type, bias: Type | None = None) -> Type:
        if weight.rank != 2:
            raise InvalidOperand(f"expected a matrix, got {weight.name}")
        inner, outer = weight.dims
        return Linear().infer(x, weight.with_shape((outer, inner)), bias)

    def lower(self, x: Value, weight: Value, bias: Value = None) -> Value:
        return x @ weight if bias is None else x @ weight + bias

    def layer(self, x: Type, weight: Type, bias: Type | None = None) -> Layer | None:
        if weight.known is None or (bias is not None and bias.known is None):
            return None
        inner, outer = weight.known.shape
        if bias is None:
            return Layer("Conv1D", (outer, inner), {"bias": False}, {"weight": 1})
        return Layer("Conv1D", (outer, inner), {}, {"weight": 1, "bias": 2})


@operator
class LayerNorm(Floating, Op, onnx="LayerNorm", versions=(1,), domain="burn"):
    """``LayerNormalization`` without a weight, which ONNX lacks."""

    axis: int = -1
    epsilon: float = 1e-5

    def lower(self, x: Value) -> Value:
        options = non_default(axis=(self.axis, -1), epsilon=(self.epsilon, 1e-5))
        return ops.layer_norm(x, **options)


@operator
class RMSNorm(Floating, Op, onnx="RMSNorm", versions=(1,), domain="burn"):
    """``RMSNormalization`` without a weight, which ONNX lacks."""

    axis: int = -1
    epsilon: float = 1e-5

    def lower(self, x: Value) -> Value:
        options = non_default(axis=(self.axis, -1), epsilon=(self.epsilon, 1e-5))
        return ops.rms_norm(x, **options)


@operator
class GroupNorm(Floating, Op, onnx="GroupNorm", versions=(1,), domain="burn"):
    """``GroupNormalization`` without a weight, which ONNX lacks."""

    num_groups: int
    epsilon: float = 1e-5

    def lower(self, x: Value) -> Value:
        options = non_default(epsilon=(self.epsilon, 1e-5))
        return ops.group_norm(x, groups=self.num_groups, **options)


@operator
class InstanceNorm(Op, onnx="InstanceNorm", versions=(1,), domain="burn"):
    """``InstanceNormalization`` without weights, which ONNX lacks."""

    epsilon: float = 1e-5

    def infer(self, x: Type) -> Type:
        if x.shape is not None and x.rank < 3:
            raise InvalidOperand(f"expected spatial axes, got {x.name}")
        return expect_float(x).forget()

    def lower(self, x: Value) -> Value:
        return ops.instance_norm(x, **non_default(epsilon=(self.epsilon, 1e-5)))


@operator
class BatchNorm(Op, onnx="BatchNorm", versions=(1,), domain="burn"):
    """``BatchNormalization`` without weights: only ``mean`` and ``var`` [C]."""

    epsilon: float = 1e-5
    momentum: float = 0.9

    def infer(self, x: Type, mean: Type, var: Type) -> Type:
        if x.shape is not None:
            check_vectors(x, (mean, var), (*x.shape, 1)[1])
        return expect_float(x).forget()

    def lower(self, x: Value, mean: Value, var: Value) -> Value:
        return ops.batch_norm(x, mean, var, **non_default(epsilon=(self.epsilon, 1e-5)))

    def layer(self, x: Type, mean: Type, var: Type) -> Layer | None:
        base = by_kept_statistics(self.epsilon, self.momentum, x, (mean, var))
        weights = {"running_mean": 1, "running_var": 2}
        if base is None:
            return None
        return replace(base, options={**base.options, "affine": False}, weights=weights)


@operator
class Roll(Op, onnx="Roll", versions=(1,), domain="burn"):
    """``x`` with its elements shifted cyclically along axes."""

    shifts: tuple[int, ...]
    axes: tuple[int, ...]

    def infer(self, x: Type) -> Type:
        if x.shape is not None:
            x.axes(self.axes)
        if len(self.shifts) != len(self.axes):
            raise InvalidOperand(
                f"expected a shift for each of axes {self.axes}, got {self.shifts}"
            )
        return x.forget()

    def lower(self, x: Value) -> Value:
        if len(self.axes) == 1:
            return ops.roll(x, self.shifts[0], self.axes[0])
        return ops.roll(x, self.shifts, self.axes)


@operator
class MultiheadAttention(Op, onnx="MultiheadAttention", versions=(1,), domain="burn"):
    """Attention of ``num_heads`` heads between projections, as in PyTorch's module.

    The operands are query, key and value ``[rows, batch, features]``, or with the batch
    first; ``padding`` ``[batch, columns]`` and ``mask`` ``[rows, columns]``, of which a
    bool hides keys where it is true and a float is added to the scores; the weight and
    the bias of the output; the bias ``[3 embed]`` of the projections, and their weight
    ``[3 embed, embed]``, or one weight each. A row without visible keys is NaN with
    ``need_weights``, else zeros before the projection of the output. The second result
    are the weights, as means over heads.
    """

    num_heads: int
    batch_first: bool = False
    is_causal: bool = False
    need_weights: bool = False
    dropout: float = 0.0
    results: int = 1

    def infer(
        self, query: Type, key: Type, value: Type, *operands: Type | None
    ) -> tuple[Type, ...]:
        out, weights = operands[2], operands[5:]
        if out is None or len(weights) not in (1, 3) or None in weights:
            raise InvalidOperand("expected weights of the output and the projections")
        given = (t for t in (*operands[2:5], *weights) if t is not None)
        dtype = same_dtype(query, key, value, *given)
        if any(t.shape is not None and t.rank != 3 for t in (query, key, value)):
            raise InvalidOperand(f"expected operands of rank 3, got {query.name}")
        if are_unequal_numbers(out.dims[0] % self.num_heads, 0):
            raise InvalidOperand(f"expected {self.num_heads} heads, got {out.name}")
        if query.shape is None or key.shape is None:
            return Type(dtype, None), Type(dtype, None)
        at = 1 if self.batch_first else 0
        shape = (query.dims[1 - at], query.dims[at], key.dims[at])
        return Type(dtype, (*query.dims[:2], out.dims[0])), Type(dtype, shape)

    def lower(
        self, query: Value, key: Value, value: Value, *operands: Value
    ) -> tuple[Value, ...]:
        padding, mask, weight, bias, stacked, *weights = operands
        if len(weights) == 1:
            weights = list(ops.chunk(weights[0], 3, 0))
        biases = (None,) * 3 if stacked is None else ops.chunk(stacked, 3, 0)
        q, k, v = map(self._heads, (query, key, value), weights, biases)
        mask = _added(padding, mask)
        if self.need_weights:
            scores = ops.attention_scores(q, k, mask, causal=self.is_causal)
            scores = ops.softmax(scores)
            out = scores @ v
        else:
            out = ops.attention(q, k, v, mask, causal=self.is_causal)
        order = (0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3)
        out = ops.flatten(ops.permute(out, order), 2)
        out = ops.linear(out, weight, *(() if bias is None else (bias,)))
        return (out, ops.mean(scores, axis=1)) if self.results > 1 else (out,)

    def _heads(self, x: Value, weight: Value, bias: Value) -> Value:
        """Return the projection of ``x`` as ``[batch, heads, length, size]``."""
        x = x if self.batch_first else x.transpose(0, 1)
        parameters = (weight,) if bias is None else (weight, bias)
        return ops.split_heads(ops.linear(x, *parameters), self.num_heads)

    def layer(
        self, query: Type, key: Type, value: Type, *operands: Type | None
    ) -> Layer | None:
        names = ["out_proj.weight", "out_proj.bias", "in_proj_bias", "in_proj_weight"]
        if len(operands) > 6:
            names[3:] = ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
        stored = {n: t for n, t in zip(names, operands[2:], strict=True) if t}
        widths = {t.dims[-1] for t in stored.values() if t.rank == 2}
        if any(t.known is None for t in stored.values()):
            return None
        if len(operands) > 6 and len(widths) == 1:  # PyTorch's then has one weight
            return None
        calls = non_default(
            is_causal=(self.is_causal, False), need_weights=(self.need_weights, True)
        )
        masks = {"key_padding_mask": 3, "attn_mask": 4}
        given = {name: at for name, at in masks.items() if operands[at - 3] is not None}
        return Layer(
            "MultiheadAttention",
            (stored["out_proj.weight"].dims[0], self.num_heads),
            self._options(stored),
            {name: 5 + names.index(name) for name in stored},
            (0, 1, 2),
            results=(0,) if self.results == 1 else None,
            keywords=given | calls,
        )

    def _options(self, stored: Mapping[str, Type]) -> dict[str, Any]:
        """Return the constructor arguments that differ from PyTorch's defaults."""
        options = non_default(
            dropout=(shortest(self.dropout), 0.0), bias=("in_proj_bias" in stored, True)
        )
        if "k_proj_weight" in stored:
            options["kdim"] = stored["k_proj_weight"].dims[1]
            options["vdim"] = stored["v_proj_weight"].dims[1]
        return options | non_default(batch_first=(self.batch_first, False))


def _added(padding: Value, mask: Value) -> Value:
    """Return what PyTorch's masks add to the scores."""
    mask, padding = (
        (
            ops.where(one, -math.inf, 0.0)
            if one is not None and one.dtype == bool_
            else one
        )
        for one in (mask, padding)
    )
    if padding is None:
        return mask
    padding = padding.unsqueeze(1).unsqueeze(1)
    return padding if mask is None else mask + padding
