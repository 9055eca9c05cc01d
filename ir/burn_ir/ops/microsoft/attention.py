"""Attention of ``com.microsoft``: with projections, with biases, and rotary."""

from __future__ import annotations

from typing import Any, Literal

from burn import ops
from burn.dtypes import is_integer
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.attention import check_extent, check_rotation, extent_of, heads_apart
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.microsoft.activation import DOMAIN
from burn_ir.ops.options import non_default, non_default_operands
from burn_ir.ops.support import differ, shape_of

FILTER = -10000.0


def bias_of(mask: Value, bias: Value, batch: Any, total: Any, filter: float) -> Value:
    """Return the term added to the scores: ``bias``, and ``filter`` for hidden keys.

    ``mask`` has a flag for each of ``total`` keys, ``[batch, keys]``, or for each
    query and key, ``[batch, queries, keys]``. As ``[batch]`` it is the number of
    keys, as ``[2 * batch]`` the ends and then the starts of their ranges.
    """
    if mask is None:
        return bias
    if len(mask.shape) == 1:
        seen = _is_in_range(mask, batch, total)
    else:
        seen = mask.unsqueeze(1 if len(mask.shape) == 3 else (1, 2)) > 0
    hidden = ops.where(seen, 0.0, filter)
    return hidden if bias is None else bias + hidden


def _is_in_range(mask: Value, batch: Any, total: Any) -> Value:
    """Return whether each key is in the range that a vector specifies.

    Zeros are appended as starts, in case the file has only ends.
    """
    positions, extent = ops.arange(total), mask.shape[0]
    if extent == batch:
        return positions < mask.reshape(-1, 1, 1, 1)
    if extent != 2 * batch and not differ(extent, batch):
        mask = ops.concat([mask, ops.zeros((batch,), dtype=mask.dtype)])[: 2 * batch]
    ends, starts = ops.chunk(mask.reshape(-1, 1, 1, 1), 2)
    return (positions < ends) & (positions >= starts)


def check_mask(mask: Type | None) -> None:
    """Check that a mask has a form that :func:`bias_of` supports.

    Raises:
        InvalidOperand: it is not.
    """
    if mask is None:
        return
    if not is_integer(mask.dtype) or mask.rank not in (1, 2, 3):
        raise InvalidOperand(
            f"expected a mask of integers, of rank 1 to 3, got {mask.name}"
        )


@operator
class Attention(Op, onnx="Attention", domain=DOMAIN, versions=(1,)):
    """Attention with the query, key and value projections in one weight."""

    num_heads: int
    do_rotary: Literal[0] = 0
    mask_filter_value: float = FILTER
    past_present_share_buffer: Literal[0] = 0
    qkv_hidden_sizes: tuple[int, ...] | None = None
    rotary_embedding_dim: int = 0
    scale: float = 0.0
    unidirectional: Literal[0, 1] = 0
    results: int = 1

    def infer(
        self,
        x: Type,
        weight: Type,
        bias: Type | None = None,
        mask: Type | None = None,
        past: Type | None = None,
        attention_bias: Type | None = None,
        past_length: Type | None = None,
    ) -> tuple[Type, ...]:
        same_dtype(expect_float(x), weight)
        check_mask(mask)
        if past_length is not None:
            raise InvalidOperand("expected no past_sequence_length, got one")
        batch, length, inner = x.dims
        check_extent("a weight for features", inner, weight.dims[0])
        *_, values = self._sizes(weight.dims[1])
        total = length if past is None else past.dims[3] + length
        size = values // self.num_heads
        present = x.with_shape((2, batch, self.num_heads, total, size))
        return x.with_shape((batch, length, values)), present

    def _sizes(self, features: Dim) -> tuple[Dim, Dim, Dim]:
        if self.qkv_hidden_sizes:
            query, key, value = self.qkv_hidden_sizes
            return query, key, value
        return features // 3, features // 3, features // 3

    def lower(
        self,
        x: Value,
        weight: Value,
        bias: Value = None,
        mask: Value = None,
        past: Value = None,
        attention_bias: Value = None,
        past_length: Value = None,
    ) -> Value:
        joint = x @ weight if bias is None else x @ weight + bias
        return self.attend(joint, x.shape, mask, past, attention_bias)

    def attend(
        self,
        joint: Value,
        shape: tuple[Any, ...],
        mask: Value,
        past: Value,
        attention_bias: Value = None,
    ) -> Value:
        """Return the results from concatenated projections [batch, rows, _]."""
        if self.qkv_hidden_sizes:
            parts = ops.split(joint, self.qkv_hidden_sizes, -1)
        else:
            parts = ops.chunk(joint, 3, -1)
        query, key, value = (ops.split_heads(part, self.num_heads) for part in parts)
        before: Any = 0
        if past is not None:
            before = past.shape[3]
            key = ops.concat([past[0], key], 2)
            value = ops.concat([past[1], value], 2)
        batch, rows, _ = shape
        filter = self.mask_filter_value
        added = bias_of(mask, attention_bias, batch, before + rows, filter)
        offset = before if self.unidirectional else 0
        options = non_default(
            scale=(self.scale, 0.0), causal=(bool(self.unidirectional), False)
        )
        out = ops.attention(
            query, key, value, *non_default_operands(added, offset), **options
        )
        out = ops.merge_heads(out)
        return out if self.results == 1 else (out, ops.stack([key, value]))


@operator
class MultiHeadAttention(Op, onnx="MultiHeadAttention", domain=DOMAIN, versions=(1,)):
    """Attention on existing projections, possibly without their bias."""

    num_heads: int
    mask_filter_value: float = FILTER
    scale: float = 0.0
    unidirectional: Literal[0, 1] = 0
    results: int = 1

    def infer(
        self,
        query: Type,
        key: Type | None = None,
        value: Type | None = None,
        bias: Type | None = None,
        mask: Type | None = None,
        attention_bias: Type | None = None,
        past_key: Type | None = None,
        past_value: Type | None = None,
    ) -> tuple[Type, ...]:
        expect_float(query)
        check_mask(mask)
        if (past_key is None) != (past_value is None):
            raise InvalidOperand("expected past_key and past_value, got one of them")
        heads = self.num_heads
        batch, rows = query.dims[:2]
        if key is None or key.rank == 5:
            size = out = query.dims[4] if query.rank == 5 else query.dims[2] // heads
            columns = rows if key is None else key.dims[1]
        else:
            if value is None:
                raise InvalidOperand("expected a value beside the key, got none")
            size = heads_apart(key, heads)[3]
            columns, out = heads_apart(value, heads)[2:]
        total = columns if past_key is None else past_key.dims[2] + columns
        return (
            query.with_shape((batch, rows, heads * out)),
            query.with_shape((batch, heads, total, size)),
            query.with_shape((batch, heads, total, out)),
            query.with_shape((batch, heads, rows, total)),
        )

    def lower(
        self,
        query: Value,
        key: Value = None,
        value: Value = None,
        bias: Value = None,
        mask: Value = None,
        attention_bias: Value = None,
        past_key: Value = None,
        past_value: Value = None,
    ) -> Value:
        batch = query.shape[0]
        total = self._columns(query, key, value)
        before: Any = 0
        query, key, value = self._split_heads(query, key, value, bias)
        if past_key is not None:
            before = extent_of(past_key, 2)
            key = ops.concat([past_key, key], 2)
            value = ops.concat([past_value, value], 2)
        total, filter = before + total, self.mask_filter_value
        added = bias_of(mask, attention_bias, batch, total, filter)
        offset = before if self.unidirectional else 0
        options = non_default(
            scale=(self.scale, 0.0), causal=(bool(self.unidirectional), False)
        )
        extra = non_default_operands(added, offset)
        out = ops.merge_heads(ops.attention(query, key, value, *extra, **options))
        if self.results < 4:
            return (out, key, value)[: self.results]
        return out, key, value, ops.attention_weights(query, key, *extra, **options)

    def _columns(self, query: Value, key: Value, value: Value) -> Any:
        if key is None:
            return query.shape[1]
        return value.shape[2] if len(key.shape) == 4 else key.shape[1]

    def _split_heads(
        self, query: Value, key: Value, value: Value, bias: Value
    ) -> tuple[Value, ...]:
        """Return queries, keys and values with bias and a separate head axis."""
        heads = self.num_heads
        if key is None:  # [batch, sequence, heads, 3, size]
            parts = [query[:, :, :, i].transpose(1, 2) for i in range(3)]
            return tuple(parts)
        if len(key.shape) == 5:  # [batch, sequence, heads, 2, size]
            first, second = (key[:, :, :, i].transpose(1, 2) for i in range(2))
            return ops.split_heads(query, heads), first, second
        is_split = len(key.shape) == 4
        if bias is not None:
            inner = query.shape[2]
            query = query + bias[:inner]
            if not is_split:
                key, value = key + bias[inner : 2 * inner], value + bias[2 * inner :]
        query = ops.split_heads(query, heads)
        if is_split:
            return query, key, value
        return query, ops.split_heads(key, heads), ops.split_heads(value, heads)


@operator
class RotaryEmbedding(Op, onnx="RotaryEmbedding", domain=DOMAIN, versions=(1,)):
    """ONNX's operator with other defaults; a single position is an offset."""

    interleaved: Literal[0, 1] = 0
    is_packed_batching: Literal[0, 1] = 0
    num_heads: int = 0
    rotary_embedding_dim: int = 0
    scale: float = 1.0

    def infer(self, x: Type, positions: Type, cos: Type, sin: Type) -> Type:
        same_dtype(expect_float(x), cos, sin)
        if not is_integer(positions.dtype):
            raise InvalidOperand(f"expected integer positions, got {positions.name}")
        if x.shape is not None and cos.shape is not None:
            heads = self._heads(x.dims, cos.dims[-1])
            if heads is not None:
                size = heads_apart(x, heads)[3]
                check_rotation(size, cos, self.rotary_embedding_dim)
        return x.forget()

    def _heads(self, x: tuple[Dim, ...], pairs: Dim) -> int | None:
        """Return the number of heads, or None if it is only known at run time."""
        if self.num_heads or len(x) == 4:
            return self.num_heads
        features = x[-1]
        if not isinstance(features, int) or not isinstance(pairs, int):
            return None
        return features // (2 * pairs)

    def lower(self, x: Value, positions: Value, cos: Value, sin: Value) -> Value:
        shape = shape_of(x)
        packed = self.num_heads > 0 if shape is None else len(shape) == 3
        length = extent_of(x, 1 if packed else 2)
        if len(positions.shape) == 1:
            positions = (positions + ops.arange(length)).unsqueeze(0)
        if packed:
            pairs = extent_of(cos, 1)
            heads = self._heads(tuple(x.shape), pairs)
            if heads is None:
                x = x.reshape(x.shape[0], length, -1, 2 * pairs).transpose(1, 2)
            else:
                x = ops.split_heads(x, heads)
        options = non_default(interleaved=(bool(self.interleaved), False))
        out = ops.rotary_embedding(x, cos, sin, positions, **options)
        out = out if self.scale == 1 else out * self.scale
        return ops.merge_heads(out) if packed else out
