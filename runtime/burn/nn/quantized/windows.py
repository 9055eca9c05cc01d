"""What quantized convolutions have in common: their window."""

from typing import Any

from burn.box import Buffer, Parameter
from burn.nn.module import Module
from burn.ops.window import Extents, Padding, per_axis


class Windowed(Module):
    """The base class of quantized convolutions of ``rank`` axes."""

    rank = 0
    bias: Buffer | Parameter | None

    @classmethod
    def weight_shape(
        cls, in_channels: int, out_channels: int, kernel_size: Extents, groups: int
    ) -> tuple[int, ...]:
        """Return [O, C/groups, *K]."""
        extents = per_axis(kernel_size, cls.rank, "kernel_size")
        return out_channels, in_channels // groups, *extents

    def set_window(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents,
        padding: Padding,
        dilation: Extents,
        groups: int,
    ) -> None:
        """Set the arguments of a convolution other than its arrays."""
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = per_axis(kernel_size, self.rank, "kernel_size")
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.groups = groups

    @property
    def window(self) -> dict[str, Any]:
        """The keyword arguments of :func:`burn.ops.conv`."""
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
        }

    def describe(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}, {self.kernel_size}"
        steps = f"stride={self.stride}, padding={self.padding}, groups={self.groups}"
        return f"{sizes}, {steps}, bias={self.bias is not None}"
