"""Products of matrices, linear layers and attention."""

from __future__ import annotations

from typing import Any

from burn_import.exported.builder import Builder, Value
from burn_import.exported.table import rule


@rule("aten.linear.default")
def linear(g: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    if weight.rank == 1:
        made = g.op("MatMul", input, weight)
    else:
        made = g.op("MatMul", input, g.op("Transpose", weight, perm=(1, 0)))
    return made if bias is None else g.op("Add", made, bias)


@rule("aten.matmul.default", "aten.mm.default", "aten.bmm.default")
def matmul(g: Builder, self: Value, other: Any = None, mat2: Any = None) -> Value:
    return g.op("MatMul", self, other if mat2 is None else mat2)


@rule("aten.addmm.default")
def addmm(
    g: Builder, self: Value, mat1: Value, mat2: Value, beta: Any = 1, alpha: Any = 1
) -> Value:
    made = g.op("MatMul", mat1, mat2)
    if alpha != 1:
        made = g.op("Mul", made, g.constant(alpha, g.dtype))
    bias = self if beta == 1 else g.op("Mul", self, g.constant(beta, g.dtype))
    return g.op("Add", made, bias)


@rule("aten.baddbmm.default")
def baddbmm(
    g: Builder, self: Value, batch1: Value, batch2: Value, beta: Any = 1, alpha: Any = 1
) -> Value:
    return addmm(g, self, batch1, batch2, beta, alpha)


@rule("aten.scaled_dot_product_attention.default")
def attention(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    return g.op(
        "Attention", query, key, value, attn_mask, is_causal=int(is_causal), scale=scale
    )
