"""Window geometry over spatial axes, from ONNX's attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from burn_ir.dim import Dim, Poly, minimum
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.ops.options import non_default, one

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
#: Maximum window size and padding of an axis.
_LARGEST = 2**24
Ints = tuple[int, ...]
Pads = tuple[tuple[Dim, Dim], ...]


@dataclass(frozen=True)
class Geometry:
    """Kernel, stride, dilation and padding, with one entry for each spatial axis."""

    kernel: tuple[Dim, ...]
    strides: Ints
    dilations: Ints
    pads: Pads
    auto_pad: str = "NOTSET"
    ceil_mode: bool = False

    @property
    def covered(self) -> tuple[Dim, ...]:
        """The size that one window covers, per axis."""
        pairs = zip(self.kernel, self.dilations, strict=True)
        return tuple((k - 1) * d + 1 for k, d in pairs)

    def count(self, size: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """Return the number of windows over the spatial ``size``."""
        return tuple(self._count(axis, extent) for axis, extent in enumerate(size))

    def _count(self, axis: int, extent: Dim) -> Dim:
        step = self.strides[axis]
        if self.auto_pad.startswith("SAME"):
            return (extent + step - 1) // step
        before, after = self.pads[axis]
        room = extent + before + after - self.covered[axis]
        if not self.ceil_mode:
            return _positive(room // step + 1)
        count = (room + (step - 1)) // step + 1
        if isinstance(self.covered[axis], int) and step + after <= self.covered[axis]:
            return _positive(count)
        # A window must not start in the padding at the end.
        return _positive(minimum(count, (extent + before + (step - 1)) // step))

    def padding(self, size: tuple[Dim, ...]) -> Pads:
        """Return the padding before and after each axis of ``size``."""
        if not self.auto_pad.startswith("SAME"):
            return self.pads
        counts = self.count(size)
        return tuple(
            split(
                _at_least_zero((n - 1) * step + covered - extent),
                upper=self.auto_pad == "SAME_UPPER",
            )
            for n, step, covered, extent in zip(
                counts, self.strides, self.covered, size, strict=True
            )
        )

    def _padding_of(self, size: tuple[Dim, ...]) -> Any:
        """Return the padding in numbers, or its mode if sizes are unknown."""
        try:
            padding = self.padding(size)
        except Undecided:
            return self.auto_pad.lower()
        if any(isinstance(side, Poly) for pair in padding for side in pair):
            return self.auto_pad.lower()
        return written(padding)

    def options(self, size: tuple[Dim, ...]) -> dict[str, Any]:
        """Return the keyword arguments over ``size``, except the kernel."""
        return non_default(
            stride=(one(self.strides), 1),
            padding=(self._padding_of(size), 0),
            dilation=(one(self.dilations), 1),
            ceil_mode=(self.ceil_mode, False),
        )


def geometry(
    kernel: tuple[Dim, ...],
    strides: Ints | None,
    dilations: Ints | None,
    pads: Ints | None,
    auto_pad: str,
    ceil_mode: bool = False,
) -> Geometry:
    """Return the geometry that attributes describe, with defaults filled in.

    Raises:
        InvalidOperand: an attribute has the wrong number of entries or values that no
            window can have.
    """
    rank = len(kernel)
    check_auto_pad(auto_pad)
    lengths = {"strides": (strides, rank), "dilations": (dilations, rank)}
    for name, (declared, expected) in (lengths | {"pads": (pads, 2 * rank)}).items():
        if declared is not None and len(declared) != expected:
            raise InvalidOperand(f"expected {expected} {name}, got {declared}")
    _check_numbers(kernel, strides, dilations, pads)
    flat = pads if pads is not None and auto_pad == "NOTSET" else (0,) * 2 * rank
    return Geometry(
        kernel,
        strides or (1,) * rank,
        dilations or (1,) * rank,
        tuple(zip(flat[:rank], flat[rank:], strict=True)),
        auto_pad,
        ceil_mode and auto_pad == "NOTSET",
    )


def _check_numbers(
    kernel: tuple[Dim, ...],
    strides: Ints | None,
    dilations: Ints | None,
    pads: Ints | None,
) -> None:
    declared = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    for name, numbers in declared.items():
        if any(isinstance(n, int) and not 0 < n <= _LARGEST for n in numbers or ()):
            shown = ", ".join(map(str, numbers or ()))
            raise InvalidOperand(f"expected {name} of 1 to {_LARGEST}, got {shown}")
    if any(not 0 <= n <= _LARGEST for n in pads or ()):
        raise InvalidOperand(f"expected pads of 0 to {_LARGEST}, got {pads}")


def check_auto_pad(auto_pad: str) -> None:
    """Check that the padding mode is valid.

    Raises:
        InvalidOperand: it is not.
    """
    if auto_pad not in AUTO_PADS:
        raise InvalidOperand(f"expected auto_pad in {AUTO_PADS}, got {auto_pad!r}")


def split(total: Dim, upper: bool) -> tuple[Dim, Dim]:
    """Return ``total`` in two halves; ``upper`` puts the larger one at the end."""
    small = total // 2
    return (small, total - small) if upper else (total - small, small)


def written(pads: Pads) -> Any:
    """Return padding as numbers, or as pairs if sides differ."""
    if all(before == after for before, after in pads):
        return one([before for before, _ in pads])
    return pads


def _positive(count: Dim) -> Dim:
    if isinstance(count, int) and count < 1:
        raise InvalidOperand(f"expected windows that fit their axes, got {count}")
    return count


def _at_least_zero(total: Dim) -> Dim:
    if isinstance(total, Poly):
        return total if total >= 0 else 0
    return max(total, 0)
