"""Activations, including softmax."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import Floating, Unary, expect_float
from burn_ir.ops.options import non_default
from burn_ir.types import broadcast
from burn_ir.upgrade import Draft


@operator
class Relu(Unary, Op, onnx="Relu", versions=(1, 6, 13, 14)):
    def lower(self, x: Value) -> Value:
        return ops.relu(x)


@operator
class LeakyRelu(Floating, Op, onnx="LeakyRelu", versions=(1, 6, 16)):
    alpha: float = 0.01

    def lower(self, x: Value) -> Value:
        return ops.leaky_relu(x, **non_default(alpha=(self.alpha, 0.01)))

    def stateless_layer(self, x: Type) -> Layer:
        return Layer("LeakyReLU", (self.alpha,), {}, {})


@operator
class PRelu(Op, onnx="PRelu", versions=(1, 6, 7, 9, 16)):
    def infer(self, x: Type, slope: Type) -> Type:
        shape = broadcast(x, slope)
        if shape is not None and outgrows(x, slope):
            raise InvalidOperand(
                f"expected a slope that broadcasts to {x.name}, got {slope.name}"
            )
        return Type(same_dtype(x, slope), x.shape)

    def lower(self, x: Value, slope: Value) -> Value:
        return ops.prelu(x, slope)


def outgrows(x: Type, slope: Type) -> bool:
    """Return whether broadcasting with ``slope`` would enlarge ``x``."""
    pairs = zip(x.dims[::-1], slope.dims[::-1], strict=False)
    return slope.rank > x.rank or any(
        n == 1 and isinstance(m, int) and m > 1 for n, m in pairs
    )


@PRelu.upgrade(1, 6)
def slope_of_channels(draft: Draft) -> Draft:
    """Upgrade: before 7, slopes were one per tensor or one per channel."""
    if draft.rank(1) != 1 or draft.type(1).dims == (1,) or draft.rank(0) < 3:
        return draft
    axes = draft.constant("axes", np.arange(1, draft.rank(0) - 1))
    return draft.with_input(1, draft.before("Unsqueeze", [draft.node.inputs[1], axes]))


@operator
class ThresholdedRelu(Floating, Op, onnx="ThresholdedRelu", versions=(10, 22)):
    alpha: float = 1.0

    def lower(self, x: Value) -> Value:
        return ops.thresholded_relu(x, **non_default(alpha=(self.alpha, 1.0)))


@operator
class Elu(Floating, Op, onnx="Elu", versions=(1, 6, 22)):
    alpha: float = 1.0

    def lower(self, x: Value) -> Value:
        return ops.elu(x, **non_default(alpha=(self.alpha, 1.0)))

    def stateless_layer(self, x: Type) -> Layer | None:
        return None if self.alpha == 1.0 else Layer("ELU", (self.alpha,), {}, {})


@operator
class Selu(Floating, Op, onnx="Selu", versions=(1, 6, 22)):
    alpha: float = 1.6732632
    gamma: float = 1.0507010

    def lower(self, x: Value) -> Value:
        options = non_default(
            alpha=(self.alpha, 1.6732632), gamma=(self.gamma, 1.0507010)
        )
        return ops.selu(x, **options)


@Selu.upgrade(1)
def shorter_constants(draft: Draft) -> Draft:
    """Upgrade: the defaults of version 1 had fewer digits."""
    return draft.with_attrs(**{"alpha": 1.6732, "gamma": 1.0507, **draft.attrs})


@operator
class Celu(Floating, Op, onnx="Celu", versions=(12, 28)):
    alpha: float = 1.0

    def lower(self, x: Value) -> Value:
        return ops.celu(x, **non_default(alpha=(self.alpha, 1.0)))

    def stateless_layer(self, x: Type) -> Layer | None:
        return None if self.alpha == 1.0 else Layer("CELU", (self.alpha,), {}, {})


@operator
class Sigmoid(Floating, Op, onnx="Sigmoid", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.sigmoid(x)


@operator
class Tanh(Floating, Op, onnx="Tanh", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.tanh(x)


@operator
class Softplus(Floating, Op, onnx="Softplus", versions=(1, 22)):
    def lower(self, x: Value) -> Value:
        return ops.softplus(x)


@operator
class Softsign(Floating, Op, onnx="Softsign", versions=(1, 22)):
    def lower(self, x: Value) -> Value:
        return ops.softsign(x)


@operator
class HardSigmoid(Floating, Op, onnx="HardSigmoid", versions=(1, 6, 22)):
    alpha: float = 0.2
    beta: float = 0.5

    def lower(self, x: Value) -> Value:
        options = non_default(alpha=(self.alpha, 0.2), beta=(self.beta, 0.5))
        return ops.hard_sigmoid(x, **options)

    def stateless_layer(self, x: Type) -> Layer | None:
        is_sixth = np.float32(self.alpha) == np.float32(1 / 6) and self.beta == 0.5
        return Layer("Hardsigmoid", (), {}, {}) if is_sixth else None


@operator
class HardSwish(Floating, Op, onnx="HardSwish", versions=(14, 22)):
    def lower(self, x: Value) -> Value:
        return ops.hard_swish(x)


@operator
class Mish(Floating, Op, onnx="Mish", versions=(18, 22)):
    def lower(self, x: Value) -> Value:
        return ops.mish(x)


@operator
class Gelu(Floating, Op, onnx="Gelu", versions=(20,)):
    approximate: str = "none"

    def __post_init__(self) -> None:
        if self.approximate not in ("none", "tanh"):
            raise InvalidOperand(
                f"expected approximate 'none' or 'tanh', got {self.approximate!r}"
            )

    def lower(self, x: Value) -> Value:
        return ops.gelu(x, **non_default(approximate=(self.approximate, "none")))

    def stateless_layer(self, x: Type) -> Layer | None:
        options = {"approximate": self.approximate}
        return None if self.approximate == "none" else Layer("GELU", (), options, {})


#: The factor of quick GELU, and the same as float32.
_QUICK_GELU = frozenset({1.702, float(np.float32(1.702))})


def swish(x: Value, alpha: float) -> Value:
    """Return ``x * sigmoid(alpha * x)``."""
    if alpha == 1.0:
        return ops.silu(x)
    if alpha in _QUICK_GELU:
        return ops.quick_gelu(x)
    return x * ops.sigmoid(x * alpha)


@operator
class Swish(Floating, Op, onnx="Swish", versions=(24,)):
    alpha: float = 1.0

    def lower(self, x: Value) -> Value:
        return swish(x, self.alpha)


@operator
class Shrink(Unary, Op, onnx="Shrink", versions=(9,)):
    bias: float = 0.0
    lambd: float = 0.5

    def lower(self, x: Value) -> Value:
        options = non_default(bias=(self.bias, 0.0), lambd=(self.lambd, 0.5))
        if dtypes.is_float(x.dtype):
            return ops.shrink(x, **options)
        return ops.shrink(x.cast(dtypes.float64), **options).cast(x.dtype)


@operator
class AlongAxis:
    """Operators along one axis, or along several as if flattened.

    A tuple stands for the flattened axes of old versions: all from the first to the
    last.
    """

    axis: int | tuple[int, ...] = -1

    def infer(self, x: Type) -> Type:
        if x.shape is not None:
            x.axes(self.axis)
        return expect_float(x).forget()

    def module(self, name: str) -> Layer | None:
        """Return the module over one axis; None where a plain function computes it."""
        is_function = self.axis == -1 or not isinstance(self.axis, int)
        return None if is_function else Layer(name, (), {"axis": self.axis}, {})


@operator
class Softmax(AlongAxis, Op, onnx="Softmax", versions=(1, 11, 13)):

    def lower(self, x: Value) -> Value:
        return ops.softmax(x, **non_default(axis=(self.axis, -1)))

    def stateless_layer(self, x: Type) -> Layer | None:
        return self.module("Softmax")


@operator
class LogSoftmax(AlongAxis, Op, onnx="LogSoftmax", versions=(1, 11, 13)):

    def lower(self, x: Value) -> Value:
        return ops.log_softmax(x, **non_default(axis=(self.axis, -1)))

    def stateless_layer(self, x: Type) -> Layer | None:
        return self.module("LogSoftmax")


@operator
class Hardmax(AlongAxis, Op, onnx="Hardmax", versions=(1, 11, 13)):

    def lower(self, x: Value) -> Value:
        if isinstance(self.axis, int):
            return ops.hardmax(x, **non_default(axis=(self.axis, -1)))
        return ops.hardmax(x.flatten(self.axis[0])).reshape(*x.shape)


@Softmax.upgrade(1, 11)
@LogSoftmax.upgrade(1, 11)
@Hardmax.upgrade(1, 11)
def axes_to_the_end(draft: Draft) -> Draft:
    """Upgrade: before 13, all axes from ``axis`` (default 1) on were flattened."""
    axis = int(draft.attrs.get("axis", 1))
    if draft.type(0).shape is None:
        return _along_rows(draft, axis)
    rank = draft.rank(0)
    first = rank if axis == rank else draft.type(0).axes(axis)[0]
    axes = tuple(range(first, rank))
    return draft.with_attrs(axis=-1 if axes == (rank - 1,) else axes)


def _along_rows(draft: Draft, axis: int) -> Draft:
    """Return the operator on a matrix of flattened axes, for unknown ranks."""
    x, node = draft.node.inputs[0], draft.node
    matrix = draft.before("Flatten", [x], axis=axis)
    result = draft.before(node.op_type, [matrix], axis=-1)
    shape = draft.before("Shape", [x])
    reshaped = replace(node, op_type="Reshape", attrs={"allowzero": 1})
    return replace(draft, node=reshaped).with_input(0, result).with_input(1, shape)
