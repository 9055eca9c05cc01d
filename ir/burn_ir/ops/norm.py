"""Normalization by statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from burn import dtypes, ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.functions import Floating, expect_float
from burn_ir.ops.options import non_default, shortest
from burn_ir.ops.support import over_axes_from, shape_of
from burn_ir.types import Array
from burn_ir.upgrade import Draft


def check_vectors(x: Type, vectors: Sequence[Type], extent: Dim) -> None:
    """Check that all vectors have ``extent`` elements.

    Raises:
        InvalidOperand: one has another number, or is no vector.
    """
    for vector in vectors:
        if vector.shape is None:
            continue
        wrong = len(vector.shape) != 1
        if not wrong and isinstance(extent, int):
            wrong = isinstance(vector.shape[0], int) and vector.shape[0] != extent
        if wrong:
            raise InvalidOperand(
                f"expected a vector of {extent} for {x.name}, got {vector.name}"
            )


def stored(*types: Type | None) -> list[Array] | None:
    """Return the arrays of present operands; None if one is not constant."""
    contents = [t.known for t in types if t is not None]
    arrays = [a for a in contents if a is not None]
    return arrays if len(arrays) == len(contents) else None


def by_kept_statistics(
    epsilon: float, momentum: float, x: Type, operands: Sequence[Type]
) -> Layer | None:
    """Return the layer without its weights; None if an operand is computed."""
    arrays = stored(*operands)
    if arrays is None or arrays[0].ndim != 1:
        return None
    if x.shape is None or not 2 <= x.rank <= 5:
        return None
    # nn.BatchNorm1d takes [N, C] as well as [N, C, L].
    name = f"BatchNorm{max(x.rank - 2, 1)}d"
    options = non_default(eps=(epsilon, 1e-5), momentum=(shortest(1.0 - momentum), 0.1))
    dtypes_ = {array.dtype for array in arrays}
    if len(dtypes_) == 1 and arrays[0].dtype != dtypes.float32:
        options["dtype"] = arrays[0].dtype
    return Layer(name, (len(arrays[0]),), options, {})


@operator
class BatchNormalization(Op, onnx="BatchNormalization", versions=(1, 6, 7, 9, 14, 15)):
    """Statistics of rank above 1 are per element of a sample."""

    epsilon: float = 1e-5
    momentum: float = 0.9
    training_mode: int = 0
    results: int = 1

    def infer(
        self, x: Type, scale: Type, bias: Type, mean: Type, var: Type
    ) -> Type | tuple[Type, ...]:
        if self.results > 1 and not self.training_mode:
            raise InvalidOperand(
                f"expected one output without training_mode, got {self.results}"
            )
        if x.shape is not None and scale.shape is not None and scale.rank == 1:
            check_vectors(x, (scale, bias, mean, var), (*x.shape, 1)[1])
        out = expect_float(x).forget()
        if not self.training_mode:
            return out
        averages = (mean.forget(), var.forget())
        return (out, *averages, *(t.with_dtype(x.dtype) for t in averages))

    def lower(
        self, x: Value, scale: Value, bias: Value, mean: Value, var: Value
    ) -> Value:
        options = non_default(epsilon=(self.epsilon, 1e-5))
        if self.training_mode:
            return self._train(x, scale, bias, mean, var)
        if _is_of_samples(scale):
            return (x - mean) / ops.sqrt(var + self.epsilon) * scale + bias
        return ops.batch_norm(x, mean, var, scale, bias, **options)

    def _train(
        self, x: Value, scale: Value, bias: Value, mean: Value, var: Value
    ) -> tuple[Value, ...]:
        options = non_default(epsilon=(self.epsilon, 1e-5))
        if _is_of_samples(scale):
            now = x.mean(0)
            centered = x - now
            spread = (centered * centered).mean(0)
            out = centered / ops.sqrt(spread + self.epsilon) * scale + bias
        else:
            out, now, spread = ops.batch_norm_train(x, scale, bias, **options)
        momentum = self.momentum
        averages = (
            mean * momentum + now.cast(mean.dtype) * (1.0 - momentum),
            var * momentum + spread.cast(var.dtype) * (1.0 - momentum),
        )
        saved = (now.cast(x.dtype), spread.cast(x.dtype)) if self.results > 3 else ()
        return (out, *averages, *saved)[: self.results]

    def layer(
        self, x: Type, scale: Type, bias: Type, mean: Type, var: Type
    ) -> Layer | None:
        operands = (mean, var, scale, bias)
        base = by_kept_statistics(self.epsilon, self.momentum, x, operands)
        weights = {"weight": 1, "bias": 2, "running_mean": 3, "running_var": 4}
        if base is None or self.training_mode:
            return None
        return replace(base, weights=weights)


def _is_of_samples(scale: Value) -> bool:
    """Return whether statistics are per element; False if unknown."""
    return len(shape_of(scale) or ()) > 1


@BatchNormalization.upgrade(1, 6, 7, 9)
def mode_of_outputs(draft: Draft) -> Draft:
    """Upgrade: before 14, more than one output meant training mode.

    The fourth and fifth output, the batch statistics, no longer exist.
    """
    training = any(name is not None for name in draft.node.outputs[1:])
    mode = {"training_mode": 1} if training else {}
    return draft.with_attrs("is_test", "spatial", **mode)


@operator
class InstanceNormalization(Op, onnx="InstanceNormalization", versions=(1, 6, 22)):
    epsilon: float = 1e-5

    def infer(self, x: Type, scale: Type, bias: Type) -> Type:
        if x.shape is not None:
            if x.rank < 3:
                raise InvalidOperand(f"expected spatial axes, got {x.name}")
            check_vectors(x, (scale, bias), x.shape[1])
        return expect_float(x).forget()

    def lower(self, x: Value, scale: Value, bias: Value) -> Value:
        options = non_default(epsilon=(self.epsilon, 1e-5))
        return ops.instance_norm(x, scale, bias, **options)

    def layer(self, x: Type, scale: Type, bias: Type) -> Layer | None:
        arrays = stored(scale, bias)
        if arrays is None or x.shape is None or not 3 <= x.rank <= 5:
            return None
        options = {**non_default(eps=(self.epsilon, 1e-5)), "affine": True}
        name, weights = f"InstanceNorm{x.rank - 2}d", {"weight": 1, "bias": 2}
        return Layer(name, (len(arrays[0]),), options, weights)


@operator
class LayerNormalization(Op, onnx="LayerNormalization", versions=(1, 17)):
    """Version 1 is onnxruntime's, whose optimizer writes it at any opset."""

    axis: int = -1
    epsilon: float = 1e-5
    stash_type: int = 1
    results: int = 1

    def __post_init__(self) -> None:
        check_stash(self.stash_type)

    def infer(self, x: Type, scale: Type, bias: Type | None = None) -> tuple[Type, ...]:
        out, stash = expect_float(x).forget(), STASH[self.stash_type]
        if x.shape is None:
            return out, Type(stash, None), Type(stash, None)
        (axis,) = x.axes(self.axis)
        shape = x.shape[:axis] + (1,) * (x.rank - axis)
        return out, Type(stash, shape), Type(stash, shape)

    def lower(self, x: Value, scale: Value, bias: Value = None) -> Value:
        terms = (scale,) if bias is None else (scale, bias)
        options = non_default(axis=(self.axis, -1), epsilon=(self.epsilon, 1e-5))
        out = ops.layer_norm(x, *terms, **options)
        if self.results == 1:
            return out
        stash = STASH[self.stash_type]
        work = x.cast(stash) if x.dtype in dtypes.HALVES else x
        mean = over_axes_from(work, self.axis, ops.mean)
        centered = work - mean
        var = over_axes_from(centered * centered, self.axis, ops.mean)
        inverse = ops.reciprocal(ops.sqrt(var + self.epsilon))
        statistics = (mean, inverse)
        if x.dtype not in (stash, *dtypes.HALVES):
            statistics = (mean.cast(stash), inverse.cast(stash))
        return (out, *statistics)[: self.results]

    def layer(self, x: Type, scale: Type, bias: Type | None = None) -> Layer | None:
        arrays = stored(scale, bias)
        if arrays is None or x.shape is None or self.results > 1:
            return None
        features = x.shape[x.axes(self.axis)[0] :]
        if any(a.shape != features for a in arrays):
            return None
        return _layer("LayerNorm", features, self.epsilon, bias is not None)


def _layer(name: str, features: tuple[Dim, ...], epsilon: float, biased: bool) -> Layer:
    first = features[0] if len(features) == 1 else features
    options = non_default(eps=(epsilon, 1e-5), bias=(biased, True))
    weights = {"weight": 1, "bias": 2} if biased else {"weight": 1}
    return Layer(name, (first,), options, weights)


#: The dtype of the first stage of a norm, by its code.
STASH = {1: dtypes.float32, 10: dtypes.float16, 11: dtypes.float64, 16: dtypes.bfloat16}


def check_stash(code: int) -> None:
    """Check that a norm's first stage can be computed in a dtype.

    Raises:
        InvalidOperand: the code is not that of a floating dtype.
    """
    if code not in STASH:
        raise InvalidOperand(f"expected stash_type in {sorted(STASH)}, got {code}")


@operator
class RMSNormalization(Op, onnx="RMSNormalization", versions=(23,)):
    axis: int = -1
    epsilon: float = 1e-5
    stash_type: int = 1

    def __post_init__(self) -> None:
        check_stash(self.stash_type)

    def infer(self, x: Type, scale: Type) -> Type:
        if x.shape is not None:
            x.axes(self.axis)
        return expect_float(x).forget()

    def lower(self, x: Value, scale: Value) -> Value:
        options = non_default(axis=(self.axis, -1), epsilon=(self.epsilon, 1e-5))
        return ops.rms_norm(x, scale, **options)

    def layer(self, x: Type, scale: Type) -> Layer | None:
        arrays = stored(scale)
        if arrays is None or x.shape is None:
            return None
        features = x.shape[x.axes(self.axis)[0] :]
        if arrays[0].shape != features:
            return None
        first = features[0] if len(features) == 1 else features
        return Layer("RMSNorm", (first,), {"eps": self.epsilon}, {"weight": 1})


@operator
class GroupNormalization(Op, onnx="GroupNormalization", versions=(18, 21)):
    num_groups: int
    epsilon: float = 1e-5
    stash_type: int = 1

    def __post_init__(self) -> None:
        check_stash(self.stash_type)

    def infer(self, x: Type, scale: Type, bias: Type) -> Type:
        if x.shape is not None:
            if x.rank < 2:
                raise InvalidOperand(f"expected a channel axis, got {x.name}")
            channels = x.shape[1]
            check_vectors(x, (scale, bias), channels)
            if isinstance(channels, int) and (
                self.num_groups < 1 or channels % self.num_groups
            ):
                raise InvalidOperand(
                    f"expected channels in {self.num_groups} groups, got {x.name}"
                )
        return expect_float(x).forget()

    def lower(self, x: Value, scale: Value, bias: Value) -> Value:
        options = non_default(epsilon=(self.epsilon, 1e-5))
        return ops.group_norm(x, scale, bias, groups=self.num_groups, **options)

    def layer(self, x: Type, scale: Type, bias: Type) -> Layer | None:
        arrays = stored(scale, bias)
        if arrays is None or x.shape is None:
            return None
        args = (self.num_groups, len(arrays[0]))
        options = non_default(eps=(self.epsilon, 1e-5))
        return Layer("GroupNorm", args, options, {"weight": 1, "bias": 2})


def _table_of_groups(draft: Draft, groups: int) -> str:
    """Return a stored vector: groups, and channels per group."""
    channels = draft.type(0).dims[1]
    if isinstance(channels, int):
        return draft.constant("shape", np.array([groups, channels // groups]))
    count = draft.before("Shape", [draft.node.inputs[0]], start=1, end=2)
    number = draft.constant("groups", np.array([groups]))
    each = draft.before("Div", [count, number])
    return draft.before("Concat", [number, each], axis=0)


@GroupNormalization.upgrade(18)
def weights_of_groups(draft: Draft) -> Draft:
    """Upgrade: before 21, scale and bias were per group, not per channel."""
    channels = draft.type(0).dims[1] if draft.rank(0) > 1 else 0
    groups = int(draft.attrs["num_groups"])
    check_vectors(draft.type(0), (draft.type(1), draft.type(2)), groups)
    if groups < 1:
        raise InvalidOperand(f"expected num_groups of at least 1, got {groups}")
    for position, name in ((1, "scale"), (2, "bias")):
        contents = draft.type(position).known
        if contents is not None and isinstance(channels, int):
            array = draft.constant(name, np.repeat(contents, channels // groups))
            draft = draft.with_input(position, array)
            continue
        after = draft.constant("axis", np.array([1]))
        column = draft.before("Unsqueeze", [draft.node.inputs[position], after])
        spread = draft.before("Expand", [column, _table_of_groups(draft, groups)])
        flat = draft.before("Reshape", [spread, draft.constant("flat", np.array([-1]))])
        draft = draft.with_input(position, flat)
    return draft


@operator
class LRN(Floating, Op, onnx="LRN", versions=(1, 13)):
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0

    def lower(self, x: Value) -> Value:
        options = non_default(
            alpha=(self.alpha, 1e-4), beta=(self.beta, 0.75), bias=(self.bias, 1.0)
        )
        return ops.lrn(x, size=self.size, **options)


@operator
class MeanVarianceNormalization(Op, onnx="MeanVarianceNormalization", versions=(9, 13)):
    axes: tuple[int, ...] = (0, 2, 3)

    def infer(self, x: Type) -> Type:
        if x.shape is not None:
            x.axes(self.axes)
        return expect_float(x).forget()

    def lower(self, x: Value) -> Value:
        centered = x - x.mean(self.axes, keepdims=True)
        deviation = ops.sqrt((centered * centered).mean(self.axes, keepdims=True))
        return centered / (deviation + 1e-9)  # the function body's guard against 0


@operator
class LpNormalization(Op, onnx="LpNormalization", versions=(1, 22)):
    axis: int = -1
    p: int = 2

    def __post_init__(self) -> None:
        if self.p not in (1, 2):
            raise InvalidOperand(f"expected p=1 or p=2, got p={self.p}")

    def infer(self, x: Type) -> Type:
        if x.shape is not None:
            x.axes(self.axis)
        return expect_float(x).forget()

    def lower(self, x: Value) -> Value:
        reduce = ops.reduce_l1 if self.p == 1 else ops.reduce_l2
        norm = reduce(x, self.axis, keepdims=True)
        return x / ops.where(norm == 0, 1.0, norm)
