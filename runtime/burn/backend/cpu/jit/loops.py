"""Loop order and loop merging."""

from math import prod
from typing import NamedTuple

from burn.backend.cpu.jit.groups import Group, Place, Store

# With more elements NumPy computes sums over axes that are not innermost, since it adds
# whole rows.
_STRIDED = 2_048
#: An innermost loop of at least this many iterations is vectorized.
MIN_VECTOR_EXTENT = 4
# Around a shorter one, a loop of so many iterations is made a vector instead.
_MIN_OUTER_EXTENT = 8


class UnwritableError(Exception):
    """A group cannot be a single loop."""


class Axis(NamedTuple):
    """A loop: its trip count, and the stride in bytes of each place."""

    extent: int
    strides: dict[Place, int]


def axes_of(
    group: Group, places: list[Place], stores: list[Store]
) -> tuple[list[Axis], list[Axis]]:
    """Return the loops over elements of the result, and those over reduced elements.

    They follow the memory order of the output, and adjacent loops are merged if
    possible. Without reductions the second ones are the innermost loop.
    """
    every = range(len(group.shape))
    reduced = group.axes or ()

    def axes(which: list[int], leads: list[Place]) -> list[Axis]:
        def order(axis: int) -> tuple[int, ...]:
            return (*(-abs(view.strides[axis]) for view in leads), axis)

        wanted = sorted((a for a in which if group.shape[a] != 1), key=order)
        axes_: list[Axis] = []
        for axis in wanted:
            extent = group.shape[axis]
            strides = {view: view.strides[axis] for view in places}
            if axes_ and all(
                axes_[-1].strides[view] == stride * extent
                for view, stride in strides.items()
            ):
                extent *= axes_.pop().extent
            axes_.append(Axis(extent, strides))
        return axes_

    written = [store.place for store in stores]
    leads = sorted([*written, *places], key=_total_stride, reverse=True)
    outer = axes([a for a in every if a not in reduced], leads[:1])
    inner = axes(list(reduced), leads[:1])
    if inner and prod(group.shape) > _STRIDED:
        steps = [abs(leads[0].strides[a]) for a in every if a not in reduced]
        if 0 < min(filter(None, steps), default=0) < abs(inner[-1].strides[leads[0]]):
            raise UnwritableError("the reduced elements are not contiguous")
    if group.axes is None and outer:
        inner = [outer.pop()]
    return outer, inner or [Axis(1, {})]


def split_short_axis(
    outer: list[Axis], inner: list[Axis], stores: list[Store]
) -> tuple[Axis | None, list[Axis], list[Axis]]:
    """Return a short axis, and the outer and inner loops of a pass without it.

    An iteration computes all elements along the short axis. LLVM makes vectors of
    elements that alternate, as of shuffled channels.
    """
    if not outer:
        return None, outer, inner
    short, long = inner[0], outer[-1]
    if any(0 < long.strides[s.place] < short.strides[s.place] for s in stores):
        short, long = long, short
    if short.extent > MIN_VECTOR_EXTENT or long.extent < _MIN_OUTER_EXTENT:
        return None, outer, inner
    return short, outer[:-1], [long]


def _total_stride(view: Place) -> tuple[int, int]:
    """Return the number of nonzero strides, and the sum of their magnitudes."""
    return sum(map(bool, view.strides)), sum(map(abs, view.strides))
