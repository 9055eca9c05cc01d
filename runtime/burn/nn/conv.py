"""Convolution layers for one, two and three spatial axes."""

from math import prod

from burn import ops
from burn.box import Parameter
from burn.dtypes import DType, float32
from burn.nn import init
from burn.nn.module import Module
from burn.ops.conv import conv, conv_transpose
from burn.ops.window import Extents, Padding, per_axis
from burn.tensor import Tensor


class _Layer(Module):
    """The base class of convolutions; ``rank`` is the number of spatial axes."""

    rank = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        groups: int,
        bias: bool,
        dtype: DType,
        transposed: bool,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"expected channels that are multiples of {groups} groups, "
                f"got {in_channels} and {out_channels}"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = per_axis(kernel_size, self.rank, "kernel_size")
        self.groups = groups
        first, second = in_channels, out_channels
        if not transposed:
            first, second = second, first
        shape = (first, second // groups, *self.kernel_size)
        fan_in = prod(shape[1:])
        self.weight = Parameter(init.kaiming_uniform(shape, fan_in, dtype))
        self.bias = (
            Parameter(init.kaiming_uniform((out_channels,), fan_in, dtype))
            if bias
            else None
        )

    def describe(self) -> str:
        shown = [f"{self.in_channels}, {self.out_channels}"]
        shown += [
            f"{name}={value}"
            for name, value in vars(self).items()
            if name not in ("in_channels", "out_channels", "weight", "bias")
        ]
        return ", ".join([*shown, f"bias={self.bias is not None}"])


class _Windowed(_Layer):
    """The base class of convolutions that are not transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Padding = 0,
        dilation: Extents = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DType = float32,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, groups
        super().__init__(*sizes, bias, dtype, transposed=False)
        self.stride, self.padding, self.dilation = stride, padding, dilation


class _Conv(_Windowed):
    def __call__(self, x: Tensor) -> Tensor:
        return conv(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )


class Conv1d(_Conv):
    """The convolution of [N, C, length]; ``weight`` is [O, C/groups, K].

    ``padding`` is an integer or a pair (before, after) in a tuple for the axis.
    """

    rank = 1


class Conv2d(_Conv):
    """The convolution of [N, C, H, W]; ``weight`` is [O, C/groups, KH, KW].

    ``padding`` is an integer, or for each axis an integer or a pair (before, after).
    """

    rank = 2


class Conv3d(_Conv):
    """The convolution of [N, C, D, H, W]; ``weight`` is [O, C/groups, KD, KH, KW].

    ``padding`` is an integer, or for each axis an integer or a pair (before, after).
    """

    rank = 3


class DeformConv2d(_Windowed):
    """The deformable convolution of [N, C, H, W] (J. Dai et al., 2017).

    Names and keys are those of ``torchvision.ops.DeformConv2d``.
    """

    rank = 2

    def __call__(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return [N, O, *count], computed from displaced positions of the windows.

        ``offset`` is [N, 2 G KH KW, *count]: rows and columns of each kernel position,
        for each of G equal parts of the channels. ``mask`` [N, G KH KW, *count]
        multiplies the elements that are read.

        Raises:
            ValueError: the shape of the offsets or of the mask is another one.
        """
        positions = prod(self.kernel_size)
        groups, rest = divmod(offset.shape[1], 2 * positions)
        if rest or not groups or x.shape[1] % groups:
            raise ValueError(
                f"expected {2 * positions} channels of offsets, or a multiple that "
                f"divides {x.shape[1]} channels, got {offset.shape[1]}"
            )
        if mask is not None and mask.shape[1] != groups * positions:
            raise ValueError(
                f"expected {groups * positions} channels of the mask, "
                f"got {mask.shape[1]}"
            )
        return ops.deform_conv(
            *(x, self.weight, offset, self.bias, mask),
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
            offset_groups=groups,
        )


class _ConvTranspose(_Layer):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Padding = 0,
        output_padding: Extents = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Extents = 1,
        dtype: DType = float32,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, groups
        super().__init__(*sizes, bias, dtype, transposed=True)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.output_padding = output_padding

    def __call__(self, x: Tensor) -> Tensor:
        return conv_transpose(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            output_padding=self.output_padding,
            dilation=self.dilation,
            groups=self.groups,
        )


class ConvTranspose1d(_ConvTranspose):
    """The transposed convolution of [N, C, length]; ``weight`` is [C, O/groups, K]."""

    rank = 1


class ConvTranspose2d(_ConvTranspose):
    """The transposed convolution of [N, C, H, W]; ``weight`` is [C, O/groups, K, K]."""

    rank = 2


class ConvTranspose3d(_ConvTranspose):
    """The transposed convolution of [N, C, D, H, W].

    ``weight`` is [C, O/groups, K, K, K].
    """

    rank = 3
