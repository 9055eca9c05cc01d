"""Grouped-query attention of decoders."""

from __future__ import annotations

from typing import Any, Literal

from burn import ops
from burn.dtypes import is_integer
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.attention import check_groups
from burn_ir.ops.functions import expect_float
from burn_ir.ops.microsoft.activation import DOMAIN
from burn_ir.ops.options import non_default, non_default_operands
from burn_ir.ops.support import known_ints


@operator
class GroupQueryAttention(Op, onnx="GroupQueryAttention", domain=DOMAIN, versions=(1,)):
    """Causal attention with rotary embedding and a key-value cache.

    ``lengths`` has the number of keys per batch element, including the new ones,
    minus one; the cache has at least ``total`` entries.
    """

    kv_num_heads: int
    num_heads: int
    do_rotary: Literal[0, 1] = 0
    k_quant_type: Literal["NONE"] = "NONE"
    kv_cache_bit_width: Literal[0] = 0
    local_window_size: int = -1
    qk_output: Literal[0] = 0
    rotary_interleaved: Literal[0, 1] = 0
    scale: float = 0.0
    smooth_softmax: Literal[-1, 0, 1] = 0
    softcap: float = 0.0
    v_quant_type: Literal["NONE"] = "NONE"
    results: int = 1

    def __post_init__(self) -> None:
        check_groups(self.num_heads, self.kv_num_heads)

    def infer(
        self,
        query: Type,
        key: Type | None,
        value: Type | None,
        past_key: Type | None,
        past_value: Type | None,
        lengths: Type,
        total: Type,
        cos: Type | None = None,
        sin: Type | None = None,
        positions: Type | None = None,
        bias: Type | None = None,
        sink: Type | None = None,
    ) -> tuple[Type, ...]:
        expect_float(query)
        if not is_integer(lengths.dtype) or not is_integer(total.dtype):
            raise InvalidOperand(
                f"expected integer lengths, got {lengths.name} and {total.name}"
            )
        if self.do_rotary and (cos is None or sin is None):
            raise InvalidOperand("expected the angles of do_rotary=1, got none")
        if (past_key is None) != (past_value is None):
            raise InvalidOperand("expected past_key and past_value, got one of them")
        batch, rows, features = query.dims
        heads, groups = self.num_heads, self.kv_num_heads
        whole = heads if key is not None else heads + 2 * groups
        size = features // whole
        out = query.with_shape((batch, rows, size * heads))
        cache_shape = (batch, groups, self._length(rows, past_key, total), size)
        return out, query.with_shape(cache_shape), query.with_shape(cache_shape)

    def _length(self, rows: Dim, past: Type | None, total: Type) -> Dim:
        """Return the number of cache entries after the call."""
        if past is None:
            return rows
        numbers = known_ints(total)
        before = None if past.shape is None else past.dims[2]
        if numbers is None or not isinstance(before, int):
            return unnamed()
        return max(before, numbers[0])

    def lower(
        self,
        query: Value,
        key: Value,
        value: Value,
        past_key: Value,
        past_value: Value,
        lengths: Value,
        total: Value,
        cos: Value = None,
        sin: Value = None,
        positions: Value = None,
        bias: Value = None,
        sink: Value = None,
    ) -> Value:
        rows = query.shape[1]
        query, key, value = self._heads(query, key, value)
        # The first call may be padded: then there are fewer keys than rows.
        start = ops.maximum(lengths.reshape(-1) + 1 - rows, 0)
        if self.do_rotary:
            if positions is None:
                positions = start.unsqueeze(1) + ops.arange(rows)
            turn = non_default(interleaved=(bool(self.rotary_interleaved), False))
            query = ops.rotary_embedding(query, cos, sin, positions, **turn)
            key = ops.rotary_embedding(key, cos, sin, positions, **turn)
        offset: Any = 0
        if past_key is not None:
            offset = start
            key = ops.extend_cache(past_key, key, start, total)
            value = ops.extend_cache(past_value, value, start, total)
        if sink is None and self.smooth_softmax == 1:
            sink = ops.zeros(self.num_heads)
        extra = non_default_operands(bias, offset, None, sink)
        out = ops.attention(query, key, value, *extra, **self._options())
        out = ops.merge_heads(out)
        return (out, key, value)[: self.results]

    def _heads(self, query: Value, key: Value, value: Value) -> tuple[Value, ...]:
        """Return query, key and value by head; they are in ``query`` without keys."""
        heads, groups = self.num_heads, self.kv_num_heads
        if key is None:
            size = query.shape[2] // (heads + 2 * groups)
            sizes = (heads * size, groups * size, groups * size)
            query, key, value = ops.split(query, sizes, -1)
        query = ops.split_heads(query, heads)
        return query, ops.split_heads(key, groups), ops.split_heads(value, groups)

    def _options(self) -> dict[str, Any]:
        left = self.local_window_size - 1 if self.local_window_size >= 0 else -1
        return {
            **non_default(scale=(self.scale, 0.0), softcap=(self.softcap, 0.0)),
            "causal": True,
            **non_default(window=((left, -1), (-1, -1))),
        }
