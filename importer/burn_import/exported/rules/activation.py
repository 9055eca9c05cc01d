"""Activations, softmax and dropout."""

from __future__ import annotations

from typing import Any

from burn_import.exported.builder import Builder, Value
from burn_import.exported.rules.functions import unary
from burn_import.exported.table import rule

for _name, _op in {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softsign": "Softsign",
    "mish": "Mish",
    "hardswish": "HardSwish",
}.items():
    rule(f"aten.{_name}.default")(unary(_op))


@rule("aten.silu.default")
def silu(g: Builder, self: Value) -> Value:
    return g.op("Mul", self, g.op("Sigmoid", self))


@rule("aten.gelu.default")
def gelu(g: Builder, self: Value, approximate: str = "none") -> Value:
    return g.op("Gelu", self, approximate=approximate)


@rule("aten.elu.default")
def elu(
    g: Builder, self: Value, alpha: Any = 1.0, scale: Any = 1, input_scale: Any = 1
) -> Value:
    if scale == 1 and input_scale == 1:
        return g.op("Elu", self, alpha=float(alpha))
    inner = g.op("Mul", self, g.constant(input_scale, g.dtype))
    made = g.op("Elu", inner, alpha=float(alpha))
    return g.op("Mul", made, g.constant(scale, g.dtype))


@rule("aten.leaky_relu.default")
def leaky_relu(g: Builder, self: Value, negative_slope: Any = 0.01) -> Value:
    return g.op("LeakyRelu", self, alpha=float(negative_slope))


@rule("aten.hardsigmoid.default")
def hardsigmoid(g: Builder, self: Value) -> Value:
    return g.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@rule("aten.hardtanh.default")
def hardtanh(g: Builder, self: Value, min_val: Any = -1, max_val: Any = 1) -> Value:
    low, high = (g.constant(x, g.dtype) for x in (min_val, max_val))
    return g.op("Clip", self, low, high)


@rule("aten.softplus.default")
def softplus(g: Builder, self: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    if beta == 1:
        return g.op("Softplus", self)
    factor = g.constant(beta, g.dtype)
    return g.op("Div", g.op("Softplus", g.op("Mul", self, factor)), factor)


def _softmax(op_type: str) -> Any:
    def apply(
        g: Builder,
        self: Value,
        dim: int,
        dtype: Any = None,
        half_to_float: bool = False,
    ) -> Value:
        return g.op(op_type, g.cast(self), axis=dim)

    return apply


rule("aten.softmax.int", "aten._softmax.default")(_softmax("Softmax"))
rule("aten.log_softmax.int", "aten._log_softmax.default")(_softmax("LogSoftmax"))


@rule("aten.dropout.default", "aten.feature_dropout.default")
def dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    if not train or p == 0:
        return input
    ratio = g.constant(p, "float32")
    return g.op("Dropout", input, ratio, g.constant(True, "bool"))
