"""Activations of exponentials and logarithms."""

from burn import ops
from burn.nn.described_module import DescribedModule
from burn.tensor import Tensor


class CELU(DescribedModule):
    """``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))``."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        if alpha == 0.0:
            raise ValueError("expected alpha other than 0, got 0")
        self.alpha = alpha

    def __call__(self, x: Tensor) -> Tensor:
        return ops.celu(x, alpha=self.alpha)


class SELU(DescribedModule):
    """A scaled ELU that keeps mean 0 and variance 1 (G. Klambauer et al., 2017)."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.selu(x)


class Mish(DescribedModule):
    """``x * tanh(softplus(x))``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.mish(x)


class Softplus(DescribedModule):
    """``log(1 + exp(beta * x)) / beta``, without PyTorch's ``threshold``: it is
    stable.
    """

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        self.beta = beta

    def __call__(self, x: Tensor) -> Tensor:
        if self.beta == 1.0:
            return ops.softplus(x)
        return ops.softplus(x * self.beta) / self.beta


class Softsign(DescribedModule):
    """``x / (1 + |x|)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.softsign(x)


class LogSigmoid(DescribedModule):
    """``log(1 / (1 + exp(-x)))``."""

    def __call__(self, x: Tensor) -> Tensor:
        return -ops.softplus(-x)


class Tanhshrink(DescribedModule):
    """``x - tanh(x)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return x - ops.tanh(x)
