"""Pooling layers, without parameters."""

from burn.nn.module import Module
from burn.ops.pool import adaptive_avg_pool, avg_pool, max_pool
from burn.ops.reduction import mean
from burn.ops.window import Extents, Padding
from burn.tensor import Tensor


class PoolLayer(Module):
    """A layer over the axes after the channels, of which there are ``rank``."""

    rank = 0

    def check_rank(self, x: Tensor) -> None:
        """Check that the input has ``rank`` axes after the channels."""
        if x.ndim != self.rank + 2:
            raise ValueError(f"expected rank {self.rank + 2}, got {list(x.shape)}")

    def describe(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in vars(self).items())


class _MaxPool(PoolLayer):
    def __init__(
        self,
        kernel_size: Extents,
        stride: Extents | None = None,
        padding: Padding = 0,
        dilation: Extents = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.ceil_mode = ceil_mode

    def __call__(self, x: Tensor) -> Tensor:
        self.check_rank(x)
        return max_pool(
            x,
            kernel_size=self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            ceil_mode=self.ceil_mode,
        )


class MaxPool1d(_MaxPool):
    """The maximum of each window of [N, C, length]."""

    rank = 1


class MaxPool2d(_MaxPool):
    """The maximum of each window of [N, C, H, W]."""

    rank = 2


class MaxPool3d(_MaxPool):
    """The maximum of each window of [N, C, D, H, W]."""

    rank = 3


class _AvgPool(PoolLayer):
    def __init__(
        self,
        kernel_size: Extents,
        stride: Extents | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad = count_include_pad

    def __call__(self, x: Tensor) -> Tensor:
        self.check_rank(x)
        return avg_pool(
            x,
            kernel_size=self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            ceil_mode=self.ceil_mode,
            count_include_pad=self.count_include_pad,
        )


class AvgPool1d(_AvgPool):
    """The mean of each window of [N, C, length], by default including padding."""

    rank = 1


class AvgPool2d(_AvgPool):
    """The mean of each window of [N, C, H, W], by default including padding."""

    rank = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of [N, C, D, H, W], by default including padding."""

    rank = 3


class _AdaptiveAvgPool(PoolLayer):
    def __init__(self, output_size: Extents) -> None:
        super().__init__()
        self.output_size = output_size

    def __call__(self, x: Tensor) -> Tensor:
        self.check_rank(x)
        if self.output_size in (1, (1,) * self.rank):
            return mean(x, tuple(range(2, x.ndim)), keepdims=True)
        return adaptive_avg_pool(x, output_size=self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of ``output_size`` even windows of [N, C, length]."""

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of ``output_size`` even windows of [N, C, H, W]."""

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of ``output_size`` even windows of [N, C, D, H, W]."""

    rank = 3


class GlobalAvgPool(Module):
    """The mean over the space of [N, C, ...]: [N, C], or [N, C, 1, ...] if kept."""

    def __init__(self, keepdims: bool = False) -> None:
        super().__init__()
        self.keepdims = keepdims

    def __call__(self, x: Tensor) -> Tensor:
        return mean(x, tuple(range(2, x.ndim)), keepdims=self.keepdims)
