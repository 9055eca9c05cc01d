"""Layers that move elements without computing."""

from burn import ops
from burn.nn.described_module import DescribedModule
from burn.ops.window import Extents, Padding
from burn.tensor import Tensor


class Flatten(DescribedModule):
    """One axis in place of those from ``start_axis`` to ``end_axis``."""

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.end_axis = start_axis, end_axis

    def __call__(self, x: Tensor) -> Tensor:
        return ops.flatten(x, self.start_axis, self.end_axis)


class Unflatten(DescribedModule):
    """Axes of ``unflattened_size`` in place of one axis; one extent can be -1."""

    def __init__(self, axis: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def __call__(self, x: Tensor) -> Tensor:
        axis = self.axis % x.ndim
        shape = (*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1 :])
        return ops.reshape(x, shape)


class PixelShuffle(DescribedModule):
    """Channels moved to space: [N, C r r, H, W] to [N, C, H r, W r]."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def __call__(self, x: Tensor) -> Tensor:
        _check_rank(x, 4)
        _check_multiple(x, 1, self.upscale_factor**2)
        return ops.depth_to_space(x, blocksize=self.upscale_factor, mode="CRD")


class PixelUnshuffle(DescribedModule):
    """Space moved to channels: [N, C, H r, W r] to [N, C r r, H, W]."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def __call__(self, x: Tensor) -> Tensor:
        _check_rank(x, 4)
        for axis in (2, 3):
            _check_multiple(x, axis, self.downscale_factor)
        return ops.space_to_depth(x, blocksize=self.downscale_factor, mode="CRD")


class ChannelShuffle(DescribedModule):
    """The channels of [N, C, ...] in turns from each of ``groups`` groups."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def __call__(self, x: Tensor) -> Tensor:
        _check_multiple(x, 1, self.groups)
        batch, channels, *space = x.shape
        x = ops.reshape(x, (batch, self.groups, channels // self.groups, *space))
        return ops.reshape(ops.transpose(x, 1, 2), (batch, channels, *space))


class Unfold(DescribedModule):
    """The windows of [N, C, H, W] as columns [N, C prod(kernel), L] (im2col)."""

    def __init__(
        self,
        kernel_size: Extents,
        dilation: Extents = 1,
        padding: Padding = 0,
        stride: Extents = 1,
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = _pair(kernel_size), dilation
        self.padding, self.stride = padding, stride

    def __call__(self, x: Tensor) -> Tensor:
        _check_rank(x, 4)
        return ops.unfold(
            x,
            self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
        )


class Fold(DescribedModule):
    """The sums ``[N, C, *output_size]`` of columns [N, C prod(kernel), L] (col2im)."""

    def __init__(
        self,
        output_size: Extents,
        kernel_size: Extents,
        dilation: Extents = 1,
        padding: Padding = 0,
        stride: Extents = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = _pair(output_size), _pair(kernel_size)
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def __call__(self, x: Tensor) -> Tensor:
        _check_rank(x, 3)
        return ops.fold(
            x,
            self.output_size,
            self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
        )


def _pair(extents: Extents) -> tuple[int, ...]:
    return (extents, extents) if isinstance(extents, int) else tuple(extents)


def _check_rank(x: Tensor, rank: int) -> None:
    if x.ndim != rank:
        raise ValueError(f"expected rank {rank}, got {list(x.shape)}")


def _check_multiple(x: Tensor, axis: int, factor: int) -> None:
    if x.shape[axis] % factor:
        raise ValueError(
            f"expected a multiple of {factor} at axis {axis}, got {list(x.shape)}"
        )
