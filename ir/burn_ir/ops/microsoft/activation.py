"""Activations of ``com.microsoft``, most of them with a preceding bias."""

from __future__ import annotations

from burn import ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.activation import outgrows, swish
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import Floating, expect_float
from burn_ir.types import broadcast

DOMAIN = "com.microsoft"


def with_bias(x: Type, *terms: Type | None) -> Type:
    """Return the type of ``x`` with added terms that broadcast to it.

    Raises:
        InvalidOperand: one does not, or is of another dtype.
    """
    present = [t for t in terms if t is not None]
    same_dtype(expect_float(x), *present)
    shape = broadcast(x, *present)
    if shape is not None and any(outgrows(x, t) for t in present):
        shown = " and ".join(t.name for t in present)
        raise InvalidOperand(f"expected terms that fit {x.name}, got {shown}")
    return x.forget()


@operator
class Gelu(Floating, Op, onnx="Gelu", domain=DOMAIN, versions=(1,)):
    def lower(self, x: Value) -> Value:
        return ops.gelu(x)


@operator
class QuickGelu(Floating, Op, onnx="QuickGelu", domain=DOMAIN, versions=(1,)):
    alpha: float = 1.702

    def lower(self, x: Value) -> Value:
        return swish(x, self.alpha)


@operator
class FastGelu(Op, onnx="FastGelu", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type, bias: Type | None = None) -> Type:
        return with_bias(x, bias)

    def lower(self, x: Value, bias: Value = None) -> Value:
        return ops.gelu(x if bias is None else x + bias, approximate="tanh")


@operator
class BiasGelu(Op, onnx="BiasGelu", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type, bias: Type) -> Type:
        return with_bias(x, bias)

    def lower(self, x: Value, bias: Value) -> Value:
        return ops.gelu(x + bias)


@operator
class BiasAdd(Op, onnx="BiasAdd", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type, bias: Type, skip: Type) -> Type:
        return with_bias(x, bias, skip)

    def lower(self, x: Value, bias: Value, skip: Value) -> Value:
        return x + bias + skip


@operator
class BiasSplitGelu(Op, onnx="BiasSplitGelu", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type, bias: Type) -> Type:
        with_bias(x, bias)
        if x.shape is None:
            return x.forget()
        features: Dim = x.dims[-1]
        if isinstance(features, int) and features % 2:
            raise InvalidOperand(f"expected an even number of features, got {x.name}")
        return x.with_shape((*x.dims[:-1], features // 2))

    def lower(self, x: Value, bias: Value) -> Value:
        value, gate = ops.chunk(x + bias, 2, -1)
        return value * ops.gelu(gate)
