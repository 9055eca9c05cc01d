"""Activations, softmax and dropout."""

from typing import Any

import numpy as np

from burn_import.frontends.torch_export.aten.math.creation import filled_tensor
from burn_import.frontends.torch_export.aten.math.elementwise import unary
from burn_import.frontends.torch_export.builder import BOOL, Builder, Operand, Value
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import UnsupportedModel

for _name, _op in {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softsign": "Softsign",
    "mish": "Mish",
    "hardswish": "HardSwish",
}.items():
    rule(f"aten.{_name}.default")(unary(_op))


@rule("aten.relu6.default")
def relu6(g: Builder, self: Value) -> Value:
    return hardtanh(g, self, 0, 6)


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
    if scale != 1 and input_scale == 1:
        return g.op("Selu", self, alpha=float(alpha), gamma=float(scale))
    x = self if input_scale == 1 else g.op("Mul", self, float(input_scale))
    result = g.op("Elu", x, alpha=float(alpha))
    if input_scale == 1:
        return result
    is_low = g.at(BOOL).op("Less", self, 0)
    result = g.op("Where", is_low, result, self)
    return result if scale == 1 else g.op("Mul", result, float(scale))


@rule("aten.selu.default")
def selu(g: Builder, self: Value) -> Value:
    return g.op("Selu", self)


@rule("aten.celu.default")
def celu(g: Builder, self: Value, alpha: Any = 1.0) -> Value:
    return g.op("Celu", self, alpha=float(alpha))


@rule("aten.leaky_relu.default")
def leaky_relu(g: Builder, self: Value, negative_slope: Any = 0.01) -> Value:
    return g.op("LeakyRelu", self, alpha=float(negative_slope))


@rule("aten.prelu.default", "aten._prelu_kernel.default")
def prelu(g: Builder, self: Value, weight: Value) -> Value:
    if self.rank < weight.rank:  # a scalar
        return g.op("PRelu", self, g.op("Squeeze", weight, [0]))
    axes = list(range(1, self.rank - 1))
    if weight.rank == 1 and axes and weight.dims != (1,):
        return g.op("PRelu", self, g.op("Unsqueeze", weight, axes))
    return g.op("PRelu", self, weight)


@rule("aten.rrelu.default")
def rrelu(
    g: Builder,
    self: Value,
    lower: Any = 0.125,
    upper: Any = 1 / 3,
    training: bool = False,
) -> Value:
    if training:
        raise UnsupportedModel(
            "rrelu is not supported in training mode; export model.eval()"
        )
    return leaky_relu(g, self, (lower + upper) / 2)


@rule("aten.rrelu_with_noise_functional.default")
def rrelu_with_noise(
    g: Builder,
    self: Value,
    noise: Value,
    lower: Any = 0.125,
    upper: Any = 1 / 3,
    training: bool = False,
) -> tuple[Value, Value]:
    return rrelu(g, self, lower, upper, training), noise


@rule("aten.hardsigmoid.default")
def hardsigmoid(g: Builder, self: Value) -> Value:
    return g.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@rule("aten.hardtanh.default")
def hardtanh(g: Builder, self: Value, min_val: Any = -1, max_val: Any = 1) -> Value:
    return g.op("Clip", self, min_val, max_val)


@rule("aten.hardshrink.default")
def hardshrink(g: Builder, self: Value, lambd: Any = 0.5) -> Value:
    """Return 0 between the bounds, else ``self``; NaN stays NaN."""
    limit = float(lambd)
    inside = (
        g.at(BOOL).op("GreaterOrEqual", self, -limit),
        g.at(BOOL).op("LessOrEqual", self, limit),
    )
    return g.op("Where", g.at(BOOL).op("And", *inside), g.cast(0), self)


@rule("aten.softshrink.default")
def softshrink(g: Builder, self: Value, lambd: Any = 0.5) -> Value:
    """Return the excess over the bounds; NaN stays NaN."""
    return g.op("Sub", self, g.op("Clip", self, -float(lambd), float(lambd)))


@rule("aten.threshold.default")
def threshold(g: Builder, self: Value, threshold: Any, value: Operand) -> Value:
    below = g.at(BOOL).op("LessOrEqual", self, threshold)
    return g.op("Where", below, g.cast(value), self)


@rule("aten.softplus.default")
def softplus(g: Builder, self: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    """Return softplus; beyond a threshold of 20 it is linear up to rounding."""
    scaled = self if beta == 1 else g.op("Mul", self, float(beta))
    result = g.op("Softplus", scaled)
    if beta != 1:
        result = g.op("Div", result, float(beta))
    if threshold >= 20:
        return result
    is_high = g.at(BOOL).op("Greater", scaled, threshold)
    return g.op("Where", is_high, self, result)


@rule("aten.log_sigmoid.default")
def log_sigmoid(g: Builder, self: Value) -> Value:
    return g.op("Neg", g.op("Softplus", g.op("Neg", self)))


@rule("aten.log_sigmoid_forward.default")
def log_sigmoid_forward(g: Builder, self: Value) -> tuple[Value, None]:
    return log_sigmoid(g, self), None


@rule("aten.glu.default")
def glu(g: Builder, self: Value, dim: int = -1) -> Value:
    a, b = g.many("Split", 2, self, axis=dim, num_outputs=2)
    return g.op("Mul", a, g.op("Sigmoid", b))


def softmax_rule(op_type: str) -> Rule:
    """Return the rule of a softmax in the dtype of the result."""

    def apply(
        g: Builder,
        self: Value,
        dim: int,
        dtype: Any = None,
        half_to_float: bool = False,
    ) -> Value:
        x = g.cast(self)
        if self.rank == 0:
            result = g.op(op_type, g.op("Unsqueeze", x, [0]), axis=0)
            return g.op("Squeeze", result, [0])
        return g.op(op_type, x, axis=dim)

    return apply


rule(*("aten.softmax.int", "aten._softmax.default"), "aten.special_softmax.default")(
    softmax_rule("Softmax")
)
rule(
    *("aten.log_softmax.int", "aten._log_softmax.default"),
    "aten.special_log_softmax.default",
)(softmax_rule("LogSoftmax"))


@rule("aten._safe_softmax.default")
def safe_softmax(g: Builder, self: Value, dim: int, dtype: Any = None) -> Value:
    """Return a softmax whose fully masked rows, and their gradients, are zeros."""
    x = g.cast(self)
    largest = g.op("ReduceMax", x, None if self.dims == () else [dim])
    is_masked = g.at(BOOL).op("Equal", largest, g.cast(-np.inf))
    shares = g.op("Softmax", g.op("Where", is_masked, g.cast(0), x), axis=dim)
    return g.op("Where", is_masked, g.cast(0), shares)


@rule("aten.dropout.default", is_alias=True)
def dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    return apply_dropout(g, input, p, train)


def apply_dropout(
    g: Builder, x: Value, p: float, train: bool | None, module: str = "Dropout"
) -> Value:
    """Return ``x`` after the ``nn`` class ``module`` if the program has it applied.

    Dropout for inference is the identity, unless it is to be restored.
    """
    if p == 0 or not (train or g.out.restores_dropout):
        return x
    attrs = {"ratio": float(p), "module": module, "restored": int(not train)}
    return g.op("Dropout", x, domain="burn", **attrs)


@rule("aten.feature_dropout.default", is_alias=True)
def feature_dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    """Drop whole channels of samples [batch, channels, ...]."""
    if input.rank in _CHANNELS or not train or p == 0:
        return apply_dropout(g, input, p, train, _CHANNELS.get(input.rank, "Dropout"))
    shape = [g.extent(input, axis) if axis < 2 else 1 for axis in range(input.rank)]
    return g.op("Mul", input, dropout(g, filled_tensor(g, shape, 1), p, train))


#: The classes that drop channels, by the rank of their operand.
_CHANNELS = {2: "Dropout", 3: "Dropout1d", 4: "Dropout2d", 5: "Dropout3d"}


@rule("aten.alpha_dropout.default", is_alias=True)
def alpha_dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    return apply_dropout(g, input, p, train, "AlphaDropout")


@rule("aten.feature_alpha_dropout.default", is_alias=True)
def feature_alpha_dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    if train and p:
        raise UnsupportedModel(
            "alpha dropout of channels is not supported in training mode"
        )
    return input


@rule("aten.native_dropout.default")
def native_dropout(
    g: Builder, input: Value, p: float, train: bool | None
) -> tuple[Value, Value]:
    if train is False or p == 0:
        input = apply_dropout(g, input, p, train)
        mask = g.op("Expand", g.constant(True, "bool"), g.op("Shape", input))
        return input, mask
    operands = (g.constant(p, "float32"), g.constant(True, "bool"))
    result, mask = g.many("Dropout", 2, input, *operands)
    return result, mask
