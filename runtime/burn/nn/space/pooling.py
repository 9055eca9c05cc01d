"""Pooling by maximum over even windows, and by norms."""

from burn import ops
from burn.nn.pool import PoolLayer
from burn.ops.window import Extents
from burn.tensor import Tensor


class _AdaptiveMaxPool(PoolLayer):
    def __init__(self, output_size: Extents) -> None:
        super().__init__()
        self.output_size = output_size

    def __call__(self, x: Tensor) -> Tensor:
        self.check_rank(x)
        return ops.adaptive_max_pool(x, output_size=self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maxima of ``output_size`` even windows of [N, C, length]."""

    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of ``output_size`` even windows of [N, C, H, W]."""

    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maxima of ``output_size`` even windows of [N, C, D, H, W]."""

    rank = 3


class _LPPool(PoolLayer):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Extents,
        stride: Extents | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode = ceil_mode

    def __call__(self, x: Tensor) -> Tensor:
        self.check_rank(x)
        return ops.lp_pool(
            x,
            kernel_size=self.kernel_size,
            p=self.norm_type,
            stride=self.stride,
            ceil_mode=self.ceil_mode,
        )


class LPPool1d(_LPPool):
    """The ``norm_type``-norm of the magnitudes in each window of [N, C, length]."""

    rank = 1


class LPPool2d(_LPPool):
    """The ``norm_type``-norm of the magnitudes in each window of [N, C, H, W]."""

    rank = 2


class LPPool3d(_LPPool):
    """The ``norm_type``-norm of the magnitudes in each window of [N, C, D, H, W]."""

    rank = 3
