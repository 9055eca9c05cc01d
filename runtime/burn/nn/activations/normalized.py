"""Activations along an axis."""

from burn import ops
from burn.nn.described_module import DescribedModule
from burn.tensor import Tensor


class LogSoftmax(DescribedModule):
    """The logarithm of softmax along an axis."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: Tensor) -> Tensor:
        return ops.log_softmax(x, axis=self.axis)


class Softmin(DescribedModule):
    """Softmax of ``-x`` along an axis."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: Tensor) -> Tensor:
        return ops.softmax(-x, axis=self.axis)


class Softmax2d(DescribedModule):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"expected rank 3 or 4, got {list(x.shape)}")
        return ops.softmax(x, axis=-3)


class GLU(DescribedModule):
    """The first half along an axis times the sigmoid of the second half."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[self.axis] % 2:
            message = f"expected an even extent at axis {self.axis}, got "
            raise ValueError(message + f"{list(x.shape)}")
        values, gates = ops.chunk(x, 2, self.axis)
        return values * ops.sigmoid(gates)
