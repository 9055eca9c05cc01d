"""Linear attention as a recurrence, and its causal convolution."""

from __future__ import annotations

from typing import Literal

from burn import ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.attention import check_groups, extent_of, heads_apart
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.options import non_default, non_default_operands
from burn_ir.types import broadcast


@operator
class LinearAttention(Op, onnx="LinearAttention", versions=(27,)):
    """Linear attention; ``chunk_size`` is only a hint for parallel execution."""

    kv_num_heads: int
    q_num_heads: int
    chunk_size: int = 64
    scale: float = 0.0
    update_rule: Literal["linear", "gated", "delta", "gated_delta"] = "gated_delta"
    results: int = 1

    def __post_init__(self) -> None:
        check_groups(self.q_num_heads, self.kv_num_heads)

    def infer(
        self,
        query: Type,
        key: Type,
        value: Type,
        state: Type | None = None,
        decay: Type | None = None,
        beta: Type | None = None,
    ) -> tuple[Type, Type]:
        same_dtype(expect_float(query), key, value)
        for name, operand, rules in (
            ("decay", decay, ("gated", "gated_delta")),
            ("beta", beta, ("delta", "gated_delta")),
        ):
            if (operand is not None) != (self.update_rule in rules):
                raise InvalidOperand(
                    f"expected {name} with the rules {' and '.join(rules)}, "
                    f"got {self.update_rule}"
                )
        state_type = query if state is None else state
        if None in (query.shape, key.shape, value.shape):
            return Type(query.dtype, None), Type(state_type.dtype, None)
        batch, heads, length, _ = heads_apart(query, self.q_num_heads)
        size = heads_apart(key, self.kv_num_heads)[3]
        out = heads_apart(value, self.kv_num_heads)[3]
        result = Type(query.dtype, (batch, length, heads * out))
        return result, Type(state_type.dtype, (batch, self.kv_num_heads, size, out))

    def lower(
        self,
        query: Value,
        key: Value,
        value: Value,
        state: Value = None,
        decay: Value = None,
        beta: Value = None,
    ) -> tuple[Value, ...]:
        groups = self.kv_num_heads
        if decay is not None:
            decay = ops.split_heads(decay, groups)
        if beta is not None:
            beta = beta.transpose(1, 2).unsqueeze(3)
        out, new_state = ops.linear_attention(
            ops.split_heads(query, self.q_num_heads),
            ops.split_heads(key, groups),
            ops.split_heads(value, groups),
            *non_default_operands(state, decay, beta),
            **({"scale": self.scale} if self.scale else {}),
        )
        return (ops.merge_heads(out), new_state)[: self.results]


@operator
class CausalConvWithState(Op, onnx="CausalConvWithState", versions=(27,)):
    activation: Literal["silu", "swish", "none"] = "none"
    results: int = 1

    def infer(
        self, x: Type, weight: Type, bias: Type | None = None, state: Type | None = None
    ) -> tuple[Type, Type]:
        same_dtype(expect_float(x), weight)
        if x.shape is None or weight.shape is None:
            return x.forget(), x.with_shape(None)
        if x.rank != 3 or weight.rank != 3:
            raise InvalidOperand(f"expected rank 3, got {x.name} and {weight.name}")
        batch, channels, _ = x.dims
        before: Dim = weight.dims[2] - 1
        return x.forget(), x.with_shape((batch, channels, before))

    def lower(
        self, x: Value, weight: Value, bias: Value = None, state: Value = None
    ) -> tuple[Value, ...]:
        channels, width = weight.shape[0], weight.shape[2]
        if state is None:
            padded = ops.pad(x, (width - 1, 0), axes=(2,))
        else:
            padded = ops.concat([state, x], 2)
        out = ops.conv(
            padded,
            weight,
            *non_default_operands(bias),
            **non_default(groups=(channels, 1)),
        )
        if self.activation != "none":
            out = ops.silu(out)
        if self.results == 1:
            return (out,)
        return out, padded[:, :, extent_of(x, 2) :]


@operator
class SwiGLU(Op, onnx="SwiGLU", versions=(28,)):
    alpha: float = 1.0

    def infer(self, gate: Type, x: Type) -> Type:
        return Type(same_dtype(expect_float(gate), x), broadcast(gate, x))

    def lower(self, gate: Value, x: Value) -> Value:
        if self.alpha == 1.0:
            return ops.silu(gate) * x
        return gate * ops.sigmoid(gate * self.alpha) * x
