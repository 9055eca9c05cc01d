"""Scaled dot-product attention, rotary embedding and key-value caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from burn import ops
from burn.dtypes import DType, float32, float64, int64, is_integer
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.graph import Graph
from burn_ir.op import Branch, Flow, Op, Repeat, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.norm import STASH
from burn_ir.ops.options import non_default, non_default_operands
from burn_ir.ops.support import are_unequal_numbers, shape_of

#: ``[batch, heads, sequence, size]``.
Extents = tuple[Dim, Dim, Dim, Dim]


def heads_apart(x: Type, heads: int | None) -> Extents:
    """Return the dimensions of ``x`` with a separate axis for heads.

    Raises:
        InvalidOperand: it has neither rank 4, nor rank 3 and a multiple of ``heads``.
        Undecided: the rank is not known.
    """
    if x.rank == 4:
        batch, count, length, size = x.dims
        return batch, count, length, size
    if x.rank != 3 or not heads or heads < 1:
        raise InvalidOperand(
            f"expected rank 4, or rank 3 and a number of heads, got {x.name} "
            f"and {heads} heads"
        )
    batch, length, features = x.dims
    if isinstance(features, int) and features % heads:
        raise InvalidOperand(f"expected features in {heads} heads, got {x.name}")
    return batch, heads, length, features // heads


def check_groups(heads: Dim, groups: Dim) -> None:
    """Check that the query heads are a multiple of the key heads.

    Raises:
        InvalidOperand: they are not.
    """
    if not isinstance(heads, int) or not isinstance(groups, int):
        return
    if groups < 1 or heads % groups:
        raise InvalidOperand(f"expected heads in {groups} groups, got {heads} heads")


def check_extent(label: str, one: Dim, other: Dim) -> None:
    """Check that two dimensions are not different numbers.

    Raises:
        InvalidOperand: they are.
    """
    if are_unequal_numbers(one, other):
        raise InvalidOperand(f"expected {label} {one}, got {other}")


def extent_of(x: Value, axis: int) -> Any:
    """Return a dimension of ``x`` while lowering, computed if it is unknown."""
    shape = shape_of(x)
    return ops.shape(x)[axis] if shape is None else shape[axis]


@operator
class Attention(Op, onnx="Attention", versions=(23, 24, 25)):
    is_causal: Literal[0, 1] = 0
    kv_num_heads: int | None = None
    left_window_size: int = -1
    q_num_heads: int | None = None
    qk_matmul_output_mode: Literal[0, 1, 2, 3] = 0
    right_window_size: int = -1
    scale: float | None = None
    softcap: float = 0.0
    softmax_precision: int | None = None
    results: int = 1

    def __post_init__(self) -> None:
        if self.softmax_precision is not None and self.softmax_precision not in STASH:
            raise InvalidOperand(
                f"expected softmax_precision in {sorted(STASH)}, "
                f"got {self.softmax_precision}"
            )
        for side in (self.left_window_size, self.right_window_size):
            if side < -1:
                raise InvalidOperand(f"expected windows of -1 or more, got {side}")

    def infer(
        self,
        query: Type,
        key: Type,
        value: Type,
        mask: Type | None = None,
        past_key: Type | None = None,
        past_value: Type | None = None,
        lengths: Type | None = None,
    ) -> tuple[Type, ...]:
        self._check(query, key, past_key, past_value, lengths)
        kinds = query, key, value, query
        if None in (query.shape, key.shape, value.shape):
            return tuple(t.with_shape(None) for t in kinds)
        batch, heads, rows, size = heads_apart(query, self.q_num_heads)
        _, groups, columns, inner = heads_apart(key, self.kv_num_heads)
        out = heads_apart(value, self.kv_num_heads)[3]
        check_groups(heads, groups)
        check_extent("keys of size", size, inner)
        if past_key is not None:
            before = unnamed() if past_key.shape is None else past_key.dims[2]
            columns = before + columns
        result = (batch, rows, heads * out)
        shapes: tuple[tuple[Dim, ...], ...] = (
            result if query.rank == 3 else (batch, heads, rows, out),
            (batch, groups, columns, size),
            (batch, groups, columns, out),
            (batch, heads, rows, columns),
        )
        pairs = zip(kinds, shapes, strict=True)
        return tuple(t.with_shape(shape) for t, shape in pairs)

    def _check(
        self,
        query: Type,
        key: Type,
        past_key: Type | None,
        past_value: Type | None,
        lengths: Type | None,
    ) -> None:
        same_dtype(expect_float(query), key)
        if (past_key is None) != (past_value is None):
            raise InvalidOperand("expected past_key and past_value, got one of them")
        if lengths is None:
            return
        if past_key is not None:
            raise InvalidOperand("expected nonpad_kv_seqlen or a past, got both")
        if lengths.dtype != int64:
            raise InvalidOperand(f"expected int64 lengths, got {lengths.name}")

    def lower(
        self,
        query: Value,
        key: Value,
        value: Value,
        mask: Value = None,
        past_key: Value = None,
        past_value: Value = None,
        lengths: Value = None,
    ) -> Value:
        packed = self._has_packed_heads(query)
        offset = self._offset(query, past_key, lengths, packed)
        packed = packed and not self._is_of_one_head(mask, past_key)
        if packed:
            heads, groups = self.q_num_heads or 1, self.kv_num_heads or 1
            query = ops.split_heads(query, heads)
            key, value = ops.split_heads(key, groups), ops.split_heads(value, groups)
        if past_key is not None:
            key = ops.concat([past_key, key], 2)
            value = ops.concat([past_value, value], 2)
        extra = non_default_operands(mask, offset, lengths)
        out = ops.attention(query, key, value, *extra, **self._options(query))
        if packed:
            out = ops.merge_heads(out)
        if self.results == 1:
            return out
        results = (out, key, value)
        if self.results < 4:
            return results[: self.results]
        return *results, self._requested_scores(query, key, extra)

    def _has_packed_heads(self, query: Value) -> bool:
        """Return whether the heads are part of the feature axis."""
        shape = shape_of(query)
        return self.q_num_heads is not None if shape is None else len(shape) == 3

    def _is_of_one_head(self, mask: Value, past_key: Value) -> bool:
        """Return whether ``burn.ops`` supports the call without a head axis."""
        shape = None if mask is None else shape_of(mask)
        few = mask is None or shape is not None and len(shape) < 4
        one = self.q_num_heads == self.kv_num_heads == self.results == 1
        return one and few and past_key is None

    def _offset(
        self, query: Value, past_key: Value, lengths: Value, packed: bool
    ) -> Any:
        """Return the number of keys before the first query, where it matters."""
        if not self.is_causal and self.left_window_size == self.right_window_size == -1:
            return 0
        if past_key is not None:
            return extent_of(past_key, 2)
        if lengths is not None:
            return lengths - extent_of(query, 1 if packed else 2)
        return 0

    def _requested_scores(
        self, query: Value, key: Value, extra: tuple[Value, ...]
    ) -> Value:
        """Return the scores at the stage that the fourth output requests."""
        options, mode = self._options(query), self.qk_matmul_output_mode
        if mode == 3:
            return ops.attention_weights(query, key, *extra, **options)
        if mode == 2:
            options.pop("softmax_dtype", None)
            return ops.attention_scores(query, key, *extra, **options)
        names = ("scale", "softcap") if mode == 1 else ("scale",)
        stage_options = {name: options[name] for name in names if name in options}
        return ops.attention_scores(query, key, **stage_options)

    def _options(self, query: Value) -> dict[str, Any]:
        window = (self.left_window_size, self.right_window_size)
        precision = STASH.get(self.softmax_precision or 0)
        return non_default(
            scale=(self.scale, None),
            softcap=(self.softcap, 0.0),
            causal=(bool(self.is_causal), False),
            window=(window, (-1, -1)),
            softmax_dtype=(precision, None),
        )


@operator
class RotaryEmbedding(Op, onnx="RotaryEmbedding", versions=(23,)):
    interleaved: Literal[0, 1] = 0
    num_heads: int | None = None
    rotary_embedding_dim: int = 0

    def infer(
        self, x: Type, cos: Type, sin: Type, positions: Type | None = None
    ) -> Type:
        same_dtype(expect_float(x), cos, sin)
        if x.shape is not None:
            size = heads_apart(x, self.num_heads)[3]
            check_rotation(size, cos, self.rotary_embedding_dim)
        return x.forget()

    def lower(self, x: Value, cos: Value, sin: Value, positions: Value = None) -> Value:
        shape = shape_of(x)
        packed = bool(self.num_heads) if shape is None else len(shape) == 3
        if packed:
            x = ops.split_heads(x, self.num_heads or 1)
        options = non_default(interleaved=(bool(self.interleaved), False))
        out = ops.rotary_embedding(
            x, cos, sin, *non_default_operands(positions), **options
        )
        return ops.merge_heads(out) if packed else out


def check_rotation(size: Dim, cos: Type, rotated: int) -> None:
    """Check that there are angles for all pairs, or for ``rotated`` features.

    Raises:
        InvalidOperand: the number differs.
    """
    if cos.shape is None:
        return
    if rotated:
        size = rotated
    if isinstance(size, int):
        if size % 2:
            raise InvalidOperand(f"expected an even number of features, got {size}")
        check_extent("angles of pairs", size // 2, cos.dims[-1])


@operator
class TensorScatter(Op, onnx="TensorScatter", versions=(24,)):
    axis: int = -2
    mode: Literal["linear", "circular"] = "linear"

    def infer(self, cache: Type, update: Type, starts: Type | None = None) -> Type:
        same_dtype(cache, update)
        if starts is not None and not is_integer(starts.dtype):
            raise InvalidOperand(f"expected integer indices, got {starts.name}")
        if cache.shape is None:
            return cache.forget()
        if cache.axes(self.axis) == (0,):
            raise InvalidOperand("expected an axis behind the batch, got axis 0")
        if update.shape is not None and update.rank != cache.rank:
            raise InvalidOperand(f"expected rank {cache.rank}, got {update.name}")
        return cache.forget()

    def lower(self, cache: Value, update: Value, starts: Value = None) -> Value:
        options = non_default(
            axis=(self.axis, -2), circular=(self.mode == "circular", False)
        )
        return ops.tensor_scatter(
            cache, update, *non_default_operands(starts), **options
        )


@operator
class FlexAttention(Op, onnx="FlexAttention", domain="ai.onnx.preview", versions=(1,)):
    """Attention with custom score functions, whose captures come last."""

    prob_mod: Graph | None = field(default=None, compare=False)
    scale: float | None = None
    score_mod: Graph | None = field(default=None, compare=False)
    softmax_precision: int | None = None

    def infer(self, query: Type, key: Type, value: Type, *captured: Type) -> Type:
        same_dtype(expect_float(query), key, value)
        if None in (query.shape, key.shape, value.shape):
            return Type(query.dtype, None)
        for operand in (query, key, value):
            if operand.rank != 4:
                raise InvalidOperand(f"expected rank 4, got {operand.name}")
        batch, heads, rows, size = query.dims
        check_groups(heads, key.dims[1])
        check_extent("keys of size", size, key.dims[3])
        return Type(query.dtype, (batch, heads, rows, value.dims[3]))

    @classmethod
    def flow(
        cls,
        attrs: Mapping[str, Any],
        operands: Sequence[Type | None],
        declared: Sequence[Type],
    ) -> Flow:
        query, key = operands[0], operands[1]
        if query is None or key is None:
            raise InvalidOperand("expected a query and a key, got none")
        shape = None
        if query.shape is not None and key.shape is not None:
            shape = (*query.dims[:3], key.dims[2])
        return Flow((Type(_precision(attrs.get("softmax_precision"), query), shape),))

    def lower(self, query: Value, key: Value, value: Value, *captured: Value) -> Value:
        work = _precision(self.softmax_precision, query)
        scores = ops.attention_scores(
            query, key, **non_default(scale=(self.scale, None))
        )
        if work != query.dtype:
            scores = scores.cast(work)
        if self.score_mod is not None:
            scores = inlined(self.score_mod, scores, *captured)
        weights = ops.softmax(scores)
        if self.prob_mod is not None:
            weights = inlined(self.prob_mod, weights, *captured)
        if work == query.dtype:
            return ops.weighted_values(weights, value)
        return ops.weighted_values(weights, value.cast(work)).cast(query.dtype)


def _precision(stash: int | None, query: Any) -> DType:
    if stash is not None:
        dtype: DType = STASH[stash]
        return dtype
    return float64 if query.dtype == float64 else float32


def inlined(graph: Graph, *inputs: Value) -> Value:
    """Return the first output of a subgraph by lowering its nodes in order.

    Raises:
        InvalidOperand: the subgraph has control flow.
    """
    values = dict(zip(graph.inputs, inputs, strict=False))
    _record_type(inputs[0], graph.types[graph.inputs[0]])

    def read(name: str | None) -> Value:
        if name is None or name in values:
            return None if name is None else values[name]
        array = graph.constants[name]
        values[name] = ops.array(array.tolist(), dtype=array.dtype)
        _record_type(values[name], Type.of(array))
        return values[name]

    for node in graph.nodes:
        results = node.op.lower(*(read(name) for name in node.inputs))
        if isinstance(results, Branch | Repeat):
            raise InvalidOperand("expected a body without control flow, got a branch")
        results = results if isinstance(results, tuple) else (results,)
        for name, result in zip(node.outputs, results, strict=False):
            if name is not None:
                values[name] = result
                _record_type(result, graph.types[name])
    return read(graph.outputs[0])


def _record_type(value: Value, type_: Type) -> None:
    """Set the type of an untyped symbol, which later nodes may read."""
    symbol: Any = getattr(value, "data", None)
    if getattr(symbol, "type", type_) is None:
        symbol.type = type_
