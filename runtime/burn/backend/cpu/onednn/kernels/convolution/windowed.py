"""Prepared convolutions that are called with arrays."""

from collections.abc import Callable
from typing import Any, TypeAlias

from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    channels_last,
    empty_channels_last,
)
from burn.backend.cpu.onednn.binding.operands import Arranged
from burn.backend.cpu.onednn.binding.prepared import Prepared
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import Slots

#: A conversion of an operand to the required layout.
Arrange: TypeAlias = Callable[[Array], Array]


class Windowed:
    """A prepared convolution or transposed convolution."""

    __slots__ = ("_arranged", "_in_place", "_prepared", "_residual", "_shape")

    def __init__(
        self,
        primitives: Primitives,
        slots: Slots,
        arranged: Arrange,
        prepared: Prepared,
    ) -> None:
        self._arranged, self._prepared = arranged, prepared
        self._shape, self._in_place = slots.shape, slots.in_place
        self._residual: Arranged | None = None
        if slots.residual is not None:
            last = channels_last(slots.shape)
            self._residual = Arranged(primitives, slots.residual, last)

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None = None,
    ) -> Array:
        """Return the result, channels-last in memory."""
        x = self._arranged(x)
        if residual is not None and self._residual is not None:
            residual = self._residual(residual)
        out = residual
        if self._in_place:
            residual = None
        else:
            out = empty_channels_last(self._shape, x.dtype)
        self._compute(x, weight, bias, residual, out)
        return out

    def _compute(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None,
        out: Array,
    ) -> None:
        """Write the result to ``out``, which has the addend if ``residual`` is None."""
        raise NotImplementedError


class DirectConv(Windowed):
    """A convolution by a single primitive."""

    __slots__ = ("_weights",)

    def __init__(
        self,
        primitives: Primitives,
        slots: Slots,
        arranged: Arrange,
        prepared: Prepared,
        weights: Weights,
    ) -> None:
        super().__init__(primitives, slots, arranged, prepared)
        self._weights = weights

    def _compute(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None,
        out: Array,
    ) -> None:
        places = [address(x), self._weights.place(weight), address(out)]
        places += [address(given) for given in (bias, residual) if given is not None]
        self._prepared.run(*places)


class PackedImagesConv(DirectConv):
    """A convolution of images that are packed side by side, as is its result."""

    __slots__ = ("_back", "_wide")

    def __init__(self, *given: Any, back: Prepared, wide: tuple[int, ...]) -> None:
        super().__init__(*given)
        self._back, self._wide = back, wide

    def _compute(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None,
        out: Array,
    ) -> None:
        result = empty_channels_last(self._wide, x.dtype)
        super()._compute(x, weight, bias, residual, result)
        self._back.run(address(result), address(out))
