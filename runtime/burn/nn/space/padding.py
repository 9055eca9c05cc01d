"""Padding layers. Widths start at the last axis, as PyTorch's: left, right, top, ..."""

from burn import ops
from burn.nn.described_module import DescribedModule
from burn.tensor import Tensor

#: One width for all sides, or two for each axis, those of the last axis first.
Widths = int | tuple[int, ...]


class _Pad(DescribedModule):
    rank, mode = 0, "constant"

    def __init__(self, padding: Widths) -> None:
        super().__init__()
        count = 2 * self.rank
        widths = (padding,) * count if isinstance(padding, int) else tuple(padding)
        if len(widths) != count:
            raise ValueError(f"expected {count} widths, got {widths}")
        self.padding = widths

    def __call__(self, x: Tensor) -> Tensor:
        return self._pad(x, 0.0)

    def _pad(self, x: Tensor, value: float) -> Tensor:
        if x.ndim not in (self.rank + 1, self.rank + 2):
            expected = f"expected rank {self.rank + 1} or {self.rank + 2}, got "
            raise ValueError(expected + f"{list(x.shape)}")
        limit = {"reflect": -1, "wrap": 0}.get(self.mode)
        axes = tuple(range(-1, -self.rank - 1, -1))
        before, after = self.padding[::2], self.padding[1::2]
        for axis, *sides in zip(axes, before, after, strict=True):
            if limit is not None and max(sides) > x.shape[axis] + limit:
                most = x.shape[axis] + limit
                message = f"expected widths up to {most} at axis {axis}, got {sides}"
                raise ValueError(message)
        return ops.pad(x, (*before, *after), value, axes, mode=self.mode)


class _ConstantPad(_Pad):
    def __init__(self, padding: Widths, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def __call__(self, x: Tensor) -> Tensor:
        return self._pad(x, self.value)


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "edge"


class _CircularPad(_Pad):
    mode = "wrap"


class ConstantPad1d(_ConstantPad):
    """``value`` around the last axis."""

    rank = 1


class ConstantPad2d(_ConstantPad):
    """``value`` around the last two axes."""

    rank = 2


class ConstantPad3d(_ConstantPad):
    """``value`` around the last three axes."""

    rank = 3


class ReflectionPad1d(_ReflectionPad):
    """Mirrored elements, without the border, around the last axis."""

    rank = 1


class ReflectionPad2d(_ReflectionPad):
    """Mirrored elements, without the border, around the last two axes."""

    rank = 2


class ReflectionPad3d(_ReflectionPad):
    """Mirrored elements, without the border, around the last three axes."""

    rank = 3


class ReplicationPad1d(_ReplicationPad):
    """The elements at the border, repeated around the last axis."""

    rank = 1


class ReplicationPad2d(_ReplicationPad):
    """The elements at the border, repeated around the last two axes."""

    rank = 2


class ReplicationPad3d(_ReplicationPad):
    """The elements at the border, repeated around the last three axes."""

    rank = 3


class CircularPad1d(_CircularPad):
    """The elements of the other side, around the last axis."""

    rank = 1


class CircularPad2d(_CircularPad):
    """The elements of the other side, around the last two axes."""

    rank = 2


class CircularPad3d(_CircularPad):
    """The elements of the other side, around the last three axes."""

    rank = 3


class ZeroPad1d(_Pad):
    """Zeros around the last axis."""

    rank = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes."""

    rank = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three axes."""

    rank = 3
