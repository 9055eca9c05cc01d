"""Activations of straight pieces."""

from burn import ops
from burn.nn.described_module import DescribedModule
from burn.tensor import Tensor


class Threshold(DescribedModule):
    """``x`` where it is above ``threshold``, ``value`` elsewhere."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value

    def __call__(self, x: Tensor) -> Tensor:
        return ops.where(x > self.threshold, x, self.value)


class Hardtanh(DescribedModule):
    """``x``, at least ``min_val`` and at most ``max_val``."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        if not min_val < max_val:
            raise ValueError(f"expected min_val < max_val, got {min_val} and {max_val}")
        self.min_val, self.max_val = min_val, max_val

    def __call__(self, x: Tensor) -> Tensor:
        return ops.clip(x, self.min_val, self.max_val)


class ReLU6(DescribedModule):
    """``min(max(x, 0), 6)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.clip(x, 0.0, 6.0)


class Hardsigmoid(DescribedModule):
    """``min(max(x / 6 + 1 / 2, 0), 1)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.hard_sigmoid(x, alpha=1 / 6, beta=0.5)


class Hardswish(DescribedModule):
    """``x * min(max(x / 6 + 1 / 2, 0), 1)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.hard_swish(x)


class Hardshrink(DescribedModule):
    """``x`` where its magnitude is above ``lambd``, 0 elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: Tensor) -> Tensor:
        return ops.shrink(x, bias=0.0, lambd=self.lambd)


class Softshrink(DescribedModule):
    """``x`` moved towards 0 by ``lambd``, 0 where its magnitude is smaller."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        if lambd < 0.0:
            raise ValueError(f"expected lambd >= 0, got {lambd}")
        self.lambd = lambd

    def __call__(self, x: Tensor) -> Tensor:
        return ops.shrink(x, bias=self.lambd, lambd=self.lambd)
