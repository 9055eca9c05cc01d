"""Normalization of ``com.microsoft``, with a preceding residual sum."""

from __future__ import annotations

from collections.abc import Callable

from burn import ops
from burn.dtypes import float32, int32, is_integer
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.microsoft.activation import DOMAIN, with_bias
from burn_ir.ops.norm import RMSNormalization, check_stash, check_vectors
from burn_ir.ops.options import non_default
from burn_ir.ops.support import over_axes_from


@operator
class SimplifiedLayerNormalization(
    Op, onnx="SimplifiedLayerNormalization", versions=(1,)
):
    """The predecessor of RMSNormalization.

    Exporters write it without a domain.
    """

    axis: int = -1
    epsilon: float = 1e-5
    stash_type: int = 1
    results: int = 1

    def __post_init__(self) -> None:
        check_stash(self.stash_type)

    def infer(self, x: Type, scale: Type) -> tuple[Type, Type]:
        same_dtype(expect_float(x), scale)
        if x.shape is None:
            return x.forget(), Type(float32, None)
        (axis,) = x.axes(self.axis)
        shape = x.shape[:axis] + (1,) * (x.rank - axis)
        return x.forget(), Type(float32, shape)

    def lower(self, x: Value, scale: Value) -> tuple[Value, ...]:
        options = non_default(axis=(self.axis, -1), epsilon=(self.epsilon, 1e-5))
        out = ops.rms_norm(x, scale, **options)
        if self.results == 1:
            return (out,)
        work = x.cast(float32)
        power = over_axes_from(work * work, self.axis, ops.mean)
        return out, ops.reciprocal(ops.sqrt(power + self.epsilon))

    def layer(self, x: Type, scale: Type) -> Layer | None:
        if self.results > 1:
            return None
        return RMSNormalization(self.axis, self.epsilon).layer(x, scale)


@operator
class Residual:
    """Operators that add a residual and normalize the sum over the last axis.

    Their results are the normalized sum, two statistics for training, and the sum.
    """

    epsilon: float = 1e-12
    results: int = 1

    def types(self, x: Type, *terms: Type | None) -> tuple[Type, ...]:
        """Return the types of the results."""
        out = with_bias(x, *terms)
        if x.shape is None:
            return out, Type(float32, None), Type(float32, None), out
        if x.rank not in (2, 3):
            raise InvalidOperand(f"expected rank 2 or 3, got {x.name}")
        statistics = Type(float32, (*x.dims[:-1], 1))
        return out, statistics, statistics, out

    def values(
        self, total: Value, norm: Callable[..., Value], *weights: Value, centered: bool
    ) -> Value:
        """Return the results from the sum."""
        present = (w for w in weights if w is not None)
        out = norm(total, *present, **non_default(epsilon=(self.epsilon, 1e-5)))
        if self.results == 1:
            return out
        work = total.cast(float32)
        mean = work.mean(-1, keepdims=True)
        rest = work - mean if centered else work
        power = (rest * rest).mean(-1, keepdims=True)
        inverse = ops.reciprocal(ops.sqrt(power + self.epsilon))
        return (out, mean, inverse, total)[: self.results]


@operator
class SkipLayerNormalization(
    Residual, Op, onnx="SkipLayerNormalization", domain=DOMAIN, versions=(1,)
):

    def infer(
        self,
        x: Type,
        skip: Type,
        gamma: Type,
        beta: Type | None = None,
        bias: Type | None = None,
    ) -> tuple[Type, ...]:
        return self.types(x, skip, gamma, beta, bias)

    def lower(
        self,
        x: Value,
        skip: Value,
        gamma: Value,
        beta: Value = None,
        bias: Value = None,
    ) -> Value:
        total = x + skip if bias is None else x + skip + bias
        return self.values(total, ops.layer_norm, gamma, beta, centered=True)


@operator
class SkipSimplifiedLayerNormalization(
    Residual, Op, onnx="SkipSimplifiedLayerNormalization", domain=DOMAIN, versions=(1,)
):

    def infer(
        self, x: Type, skip: Type, gamma: Type, bias: Type | None = None
    ) -> tuple[Type, ...]:
        return self.types(x, skip, gamma, bias)

    def lower(self, x: Value, skip: Value, gamma: Value, bias: Value = None) -> Value:
        total = x + skip if bias is None else x + skip + bias
        return self.values(total, ops.rms_norm, gamma, centered=False)


@operator
class EmbedLayerNormalization(
    Op, onnx="EmbedLayerNormalization", domain=DOMAIN, versions=(1,)
):
    epsilon: float = 1e-12
    mask_index_type: int = 0
    results: int = 1

    def infer(
        self,
        ids: Type,
        segments: Type | None,
        words: Type,
        positions: Type,
        segment_table: Type | None,
        gamma: Type,
        beta: Type,
        mask: Type | None = None,
        position_ids: Type | None = None,
    ) -> tuple[Type, ...]:
        if not is_integer(ids.dtype):
            raise InvalidOperand(f"expected integers as ids, got {ids.name}")
        if (segments is None) != (segment_table is None):
            raise InvalidOperand("expected segment ids and a table, got one of them")
        dtype = same_dtype(expect_float(words), positions, gamma, beta)
        if ids.shape is None:
            return Type(dtype, None), Type(int32, None), Type(dtype, None)
        if ids.rank != 2:
            raise InvalidOperand(f"expected ids of rank 2, got {ids.name}")
        features = words.dims[1]
        check_vectors(words, (gamma, beta), features)
        out = Type(dtype, (*ids.dims, features))
        return out, Type(int32, ids.dims[:1]), out

    def lower(
        self,
        ids: Value,
        segments: Value,
        words: Value,
        positions: Value,
        segment_table: Value,
        gamma: Value,
        beta: Value,
        mask: Value = None,
        position_ids: Value = None,
    ) -> Value:
        if position_ids is None:
            total = ops.take(words, ids) + positions[: ids.shape[1]]
        else:
            total = ops.take(words, ids) + ops.take(positions, position_ids)
        if segments is not None:
            total = total + ops.take(segment_table, segments)
        options = non_default(epsilon=(self.epsilon, 1e-5))
        out = ops.layer_norm(total, gamma, beta, **options)
        if self.results == 1:
            return out
        if mask is None:
            counts = ops.zeros(ids.shape[:1], dtype=int32)
        else:
            counts = (mask == 1).sum(1).cast(int32)
        return (out, counts, total)[: self.results]
