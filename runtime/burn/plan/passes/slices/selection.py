"""Selections of adjacent rows along one axis, and how reshapes change them."""

from math import prod
from typing import Any, NamedTuple

Shape = tuple[int, ...]


class Selection(NamedTuple):
    """The rows from ``start`` to ``stop`` of ``extent`` along ``axis``, a negative one.

    After a reshape the axis may be merged with others: ``before`` and ``after`` are the
    extents of the axes that were merged on either side.
    """

    axis: int
    start: int
    stop: int
    extent: int
    before: int = 1
    after: int = 1

    def selected_shape(self, shape: Shape) -> Shape:
        """Return the shape of the selected rows of an array of ``shape``."""
        rows = self.before * (self.stop - self.start) * self.after
        return _with_extent(shape, self.axis, rows)

    def is_small(self) -> bool:
        """Return whether at most half of the rows are selected."""
        return 0 < self.stop - self.start <= self.extent // 2

    def on(self, axis: int) -> "Selection":
        """Return the same rows of an array that has them on ``axis``."""
        return self._replace(axis=axis)

    def key(self, rank: int) -> tuple[slice, ...]:
        """Return the index of the rows in an array whose axes are not merged."""
        full = (slice(None),) * (rank + self.axis)
        return (*full, slice(self.start, self.stop))

    def unmerged(self, shape: Shape) -> tuple["Selection", Shape]:
        """Return the selection and the shape with the rows on an axis of their own."""
        if self.before == self.after == 1:
            return self, shape
        axis = len(shape) + self.axis
        parts = (self.before, self.extent, self.after)
        apart = (*shape[:axis], *parts, *shape[axis + 1 :])
        rows = Selection(self.axis - 1, self.start, self.stop, self.extent)
        return rows, apart

    def reshaped(self, shape: Shape, target: Shape) -> "Selection | None":
        """Return the selection in an array of ``target``, or None if rows have no axis.

        ``shape`` is that of the array before the reshape.
        """
        axis = len(shape) + self.axis
        outer = prod(shape[:axis]) * self.before
        inner = self.after * prod(shape[axis + 1 :])
        for position in range(len(target)):
            before, rest = divmod(outer, prod(target[:position]) or 1)
            after, left = divmod(inner, prod(target[position + 1 :]) or 1)
            if before and after and not rest and not left:
                moved = (position - len(target), self.start, self.stop, self.extent)
                return Selection(*moved, before, after)
        return None


def selection_of_key(key: Any, shape: Shape) -> Selection | None:
    """Return the rows that an index selects along one axis, with all of the others.

    None if the index is anything else.
    """
    items = _without_ellipsis(key if isinstance(key, tuple) else (key,), len(shape))
    if items is None:
        return None
    selections: list[Selection] = []
    for axis, (item, extent) in enumerate(zip(items, shape, strict=False)):
        bounds = _bounds(item, extent)
        if bounds is None:
            return None
        if type(item) is int or bounds != (0, extent):
            selections.append(Selection(axis - len(shape), *bounds, extent))
    return selections[0] if len(selections) == 1 and selections[0].is_small() else None


def key_in_selection(key: Any, selection: Selection, rank: int) -> tuple[Any, ...]:
    """Return ``key``, an index of the whole array, as an index of its selected rows."""
    items = _without_ellipsis(key if isinstance(key, tuple) else (key,), rank)
    assert items is not None
    axis = rank + selection.axis
    rows = 0 if type(items[axis]) is int else slice(None)
    return (*items[:axis], rows, *items[axis + 1 :])


def _with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    position = len(shape) + axis
    return (*shape[:position], extent, *shape[position + 1 :])


def _without_ellipsis(items: tuple[Any, ...], rank: int) -> tuple[Any, ...] | None:
    """Return an item for each axis, None unless all are integers and slices."""
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if any(type(x) not in (int, slice) for x in items if x is not Ellipsis):
        return None
    missing = (slice(None),) * (rank - len(items) + len(dots))
    if len(dots) > 1 or len(items) - len(dots) > rank:
        return None
    position = dots[0] if dots else len(items)
    return (*items[:position], *missing, *items[position + len(dots) :])


def _bounds(item: Any, extent: int) -> tuple[int, int] | None:
    """Return the first row and the end of those that ``item`` selects."""
    if type(item) is int:
        start = item + extent if item < 0 else item
        return (start, start + 1) if 0 <= start < extent else None
    if any(type(x) is not int for x in (item.start, item.stop) if x is not None):
        return None
    if item.step not in (None, 1):
        return None
    start, stop, _ = item.indices(extent)
    return (start, stop) if start < stop else None
