"""Loop order and loop merging."""

from math import prod
from typing import NamedTuple

from burn.backend.cpu.jit.groups import Group, Place, Store

# With more elements NumPy computes sums over axes that are not innermost, since it adds
# whole rows.
_STRIDED = 2_048


class UnwritableError(Exception):
    """A group cannot be a single loop."""


class Axis(NamedTuple):
    """A loop: its trip count, and the stride in bytes of each place."""

    extent: int
    strides: dict[Place, int]


def axes_of(
    group: Group, places: list[Place], stores: list[Store]
) -> tuple[list[Axis], list[Axis]]:
    """Return the loops over kept elements, and those over reduced elements.

    They follow the memory order of the output, and adjacent loops are merged if
    possible. Without reductions the innermost loops are a pass.
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


def _total_stride(view: Place) -> tuple[int, int]:
    """Return the number of nonzero strides, and the sum of their magnitudes."""
    return sum(map(bool, view.strides)), sum(map(abs, view.strides))
