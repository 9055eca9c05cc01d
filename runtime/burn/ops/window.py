"""Sliding windows over spatial axes: the geometry of convolution and pooling."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from burn.ops.support import Array, namespace

#: One integer for every spatial axis, or one for each.
Extents: TypeAlias = int | tuple[int, ...]
#: As :data:`Extents` for both sides, or a pair (before, after) for each axis, or as
#: much as it takes for one window every stride, the odd element behind or before.
Padding: TypeAlias = (
    int
    | tuple[int, ...]
    | tuple[tuple[int, int], ...]
    | Literal["same_upper", "same_lower"]
)


def per_axis(value: Extents, rank: int, name: str = "extent") -> tuple[int, ...]:
    """Return ``value`` as one integer for each of ``rank`` axes.

    Raises:
        ValueError: a sequence has another length.
    """
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) != rank:
        raise ValueError(f"expected {rank} values of {name}, got {value}")
    return numbers


def pads_of(padding: Padding, rank: int) -> tuple[tuple[int, int], ...]:
    """Return ``padding`` as (before, after) for each of ``rank`` axes; below 0 crops.

    Raises:
        ValueError: a sequence has another length.
    """
    if isinstance(padding, int):
        return ((padding, padding),) * rank
    if isinstance(padding, str):
        raise ValueError(f"expected padding in numbers here, got {padding!r}")
    if len(padding) != rank:
        raise ValueError(f"expected {rank} values of padding, got {padding}")
    return tuple(
        (side, side) if isinstance(side, int) else (side[0], side[1])
        for side in padding
    )


@dataclass(frozen=True)
class Windows:
    """The windows over extents ``size``; every field has one entry per spatial axis.

    ``count`` is the number of windows, ``pads`` the padding before and after.
    """

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    count: tuple[int, ...]

    @property
    def taps(self) -> int:
        """The number of positions in a window."""
        return prod(self.kernel)

    @cached_property
    def needed(self) -> tuple[int, ...]:
        """The extents that the windows cover, from the first to the last."""
        return tuple(
            max(n - 1, 0) * s + d * (k - 1) + 1
            for n, s, d, k in zip(
                self.count, self.stride, self.dilation, self.kernel, strict=True
            )
        )

    @cached_property
    def exact(self) -> tuple[tuple[int, int], ...]:
        """The ``pads`` with which the windows cover everything and nothing more."""
        return tuple(
            (before, needed - size - before)
            for (before, _), needed, size in zip(
                self.pads, self.needed, self.size, strict=True
            )
        )

    @cached_property
    def trimmed(self) -> "Windows":
        """The same windows without positions that are padding in all of them.

        A window far wider than its axis, as ``ceil_mode`` allows, then needs no more
        memory and time than the axis. Sums and maxima are unchanged.
        """
        fields = zip(
            self.size,
            self.kernel,
            self.stride,
            self.dilation,
            self.pads,
            self.count,
            strict=True,
        )
        axes = [_trimmed_axis(*axis) for axis in fields]
        kernel, pads = (tuple(values) for values in zip(*axes, strict=True))
        return replace(self, kernel=kernel, pads=pads)

    def places(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield each kernel position: its index, and its elements in all windows.

        The slices index the spatial axes of the result of :meth:`cover`.
        """
        for tap in product(*map(range, self.kernel)):
            yield (
                tap,
                tuple(
                    slice(p * d, p * d + (n - 1) * s + 1, s) if n else slice(0, 0)
                    for p, d, n, s in zip(
                        tap, self.dilation, self.count, self.stride, strict=True
                    )
                ),
            )

    def cover(self, x: Array, first: int, fill: Any, plain: bool = False) -> Array:
        """Return ``x``, whose spatial axes start at ``first``, padded and cropped.

        ``plain`` requests row-major memory if a copy is needed; otherwise the memory
        order of the axes is preserved. Without padding the result is a view.
        """
        pads = self.exact
        keys = [slice(None)] * x.ndim
        target = [slice(None)] * x.ndim
        shape = list(x.shape)
        for axis, ((before, after), size, needed) in enumerate(
            zip(pads, self.size, self.needed, strict=True), first
        ):
            keys[axis] = slice(max(-before, 0), size - max(-after, 0))
            target[axis] = slice(max(before, 0), needed - max(after, 0))
            shape[axis] = needed
        inside = x[tuple(keys)]
        if inside.shape == tuple(shape):
            return inside
        order: Literal["C", "K"] = "C" if plain else "K"
        whole = np.full_like(x, fill, shape=tuple(shape), order=order)
        whole[tuple(target)] = inside
        return whole

    def uncover(self, like: Array, first: int) -> tuple[Array, Array]:
        """Return zeros to add to at :meth:`places`, and their part that is not padding.

        The adjoint of :meth:`cover`; the memory order is that of ``like``.
        """
        shape, covered = list(like.shape), [slice(None)] * like.ndim
        inside = [slice(None)] * like.ndim
        for axis, ((before, _), size, needed) in enumerate(
            zip(self.pads, self.size, self.needed, strict=True), first
        ):
            lead = max(-before, 0)
            start = before + lead
            shape[axis] = max(lead + needed, start + size)
            covered[axis] = slice(lead, lead + needed)
            inside[axis] = slice(start, start + size)
        whole = np.zeros_like(like, shape=tuple(shape))
        return whole[tuple(covered)], whole[tuple(inside)]


def _trimmed_axis(
    size: int, kernel: int, stride: int, dilation: int, pad: tuple[int, int], count: int
) -> tuple[int, tuple[int, int]]:
    """Return the window extent and the padding of an axis after :attr:`trimmed`."""
    before, after = pad
    first = max(-(-(before - (count - 1) * stride) // dilation), 0)
    last = -(-(size + before) // dilation)
    if first >= min(kernel, last):
        return kernel, pad  # of padding alone
    return min(kernel, last) - first, (before - first * dilation, after)


def windows(
    size: tuple[int, ...],
    kernel: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
) -> Windows:
    """Return the windows over the extents ``size``.

    With ``ceil_mode`` the last window may reach beyond the padding, but not start
    there.

    Raises:
        ValueError: a window does not fit, or an attribute has the wrong length.
    """
    rank = len(size)
    kernel = per_axis(kernel, rank, "kernel_size")
    stride = per_axis(stride, rank, "stride")
    dilation = per_axis(dilation, rank, "dilation")
    if isinstance(padding, str):
        padding = _same(size, kernel, stride, dilation, padding)
    pads = pads_of(padding, rank)
    return _windows(tuple(size), kernel, stride, pads, dilation, ceil_mode)


def _same(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: str,
) -> tuple[tuple[int, int], ...]:
    """Return the padding with which there is a window every ``stride`` elements."""
    if padding not in ("same_upper", "same_lower"):
        raise ValueError(f"expected same_upper or same_lower, got {padding!r}")
    pads = []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
        small = total // 2
        sides = (small, total - small)
        pads.append(sides if padding == "same_upper" else sides[::-1])
    return tuple(pads)


@lru_cache(maxsize=1024)
def _windows(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pads: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
) -> Windows:
    count = []
    for axis, extent in enumerate(size):
        before, after = pads[axis]
        room = extent + before + after - dilation[axis] * (kernel[axis] - 1) - 1
        step = stride[axis]
        number = (-(-room // step) if ceil_mode else room // step) + 1
        if ceil_mode and (number - 1) * step >= extent + before:
            number -= 1
        if number < 1:
            raise ValueError(
                f"expected a window of {kernel[axis]} (dilation {dilation[axis]}) to "
                f"fit spatial axis {axis} of {extent} padded by {(before, after)}"
            )
        count.append(number)
    return Windows(size, kernel, stride, dilation, pads, tuple(count))


def transposed(
    count: tuple[int, ...],
    kernel: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    output_padding: Extents = 0,
    dilation: Extents = 1,
) -> Windows:
    """Return ``count`` windows, over the extents that follow from it.

    Raises:
        ValueError: an extent is not positive, or an attribute has the wrong length.
    """
    rank = len(count)
    kernels, strides = per_axis(kernel, rank), per_axis(stride, rank, "stride")
    dilations = per_axis(dilation, rank, "dilation")
    extra = per_axis(output_padding, rank, "output_padding")
    pads = tuple(
        (before, after - more)
        for (before, after), more in zip(pads_of(padding, rank), extra, strict=True)
    )
    size = tuple(
        (n - 1) * s + d * (k - 1) + 1 - sum(pad)
        for n, s, d, k, pad in zip(
            count, strides, dilations, kernels, pads, strict=True
        )
    )
    if min(size) < 0:
        raise ValueError(f"expected extents of at least 0, got {size}")
    return Windows(size, kernels, strides, dilations, pads, tuple(count))


def every_window(padded: Array, wins: Windows, groups: int, taps_first: bool) -> Array:
    """Return a view of every window: [G, N, *count, *K, C] or [G, N, *count, C, *K]."""
    x = namespace(padded).ascontiguousarray(padded) if wins.taps > 1 else padded
    rank, shape, strides = len(wins.count), x.shape, x.strides
    within = shape[-1] // groups
    kernel = tuple(
        step * stride for step, stride in zip(wins.dilation, strides[1:-1], strict=True)
    )
    outer = tuple(
        step * stride for step, stride in zip(wins.stride, strides[1:-1], strict=True)
    )
    view = namespace(x).lib.stride_tricks.as_strided(
        x,
        (groups, shape[0], *wins.count, *wins.kernel, within),
        (within * strides[-1], strides[0], *outer, *kernel, strides[-1]),
    )
    return view if taps_first else np.moveaxis(view, -1, 2 + rank)
