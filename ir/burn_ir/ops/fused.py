"""Operators of the domain ``burn``, by which passes replace several of ONNX."""

from __future__ import annotations

from dataclasses import replace

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import Floating, expect_float
from burn_ir.ops.matmul import check_inner
from burn_ir.ops.norm import by_kept_statistics, check_vectors
from burn_ir.ops.options import non_default


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
