"""Activations as modules, for use as a field or in a ``Sequential``.

Activations without arguments need no module: ``Sequential`` accepts ``ops.relu``.
"""

from typing import Literal

from burn import ops
from burn.box import Parameter
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor


class ReLU(Module):
    """``max(x, 0)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.relu(x)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.tanh(x)


class SiLU(Module):
    """``x * sigmoid(x)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.silu(x)


class LeakyReLU(Module):
    """``x`` where positive, ``negative_slope * x`` elsewhere."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def __call__(self, x: Tensor) -> Tensor:
        return ops.leaky_relu(x, alpha=self.negative_slope)

    def describe(self) -> str:
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def __call__(self, x: Tensor) -> Tensor:
        return ops.elu(x, alpha=self.alpha)

    def describe(self) -> str:
        return f"alpha={self.alpha}"


class GELU(Module):
    """``x`` times the normal distribution function, or its tanh approximation."""

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        self.approximate: Literal["none", "tanh"] = approximate

    def __call__(self, x: Tensor) -> Tensor:
        return ops.gelu(x, approximate=self.approximate)

    def describe(self) -> str:
        return f"approximate={self.approximate!r}"


class PReLU(Module):
    """``x`` where positive, ``weight * x`` elsewhere; one slope, or one per channel."""

    def __init__(self, num_parameters: int = 1, init_value: float = 0.25) -> None:
        super().__init__()
        self.weight = Parameter(init.constant((num_parameters,), init_value))

    def __call__(self, x: Tensor) -> Tensor:
        beside = (-1, *(1 for _ in x.shape[2:]))
        return ops.prelu(x, ops.reshape(self.weight, beside))

    def describe(self) -> str:
        return f"{self.weight.shape[0]}"


class Softmax(Module):
    """Softmax over one or several axes."""

    def __init__(self, axis: int | tuple[int, ...] = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: Tensor) -> Tensor:
        return ops.softmax(x, axis=self.axis)

    def describe(self) -> str:
        return f"axis={self.axis}"


class Identity(Module):
    """The identity function: a placeholder in an ``nn.Sequential``."""

    def __call__(self, x: Tensor) -> Tensor:
        return x
