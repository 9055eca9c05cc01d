"""The number of elements of slices of an axis."""

from burn_ir.dim.formulas import Dim, at_least, maximum, minimum
from burn_ir.dim.substitution import without_extrema
from burn_ir.dim.unnamed import unnamed
from burn_ir.errors import Undecided

#: Ends beyond these mean "to the end", whatever the dimension.
FAR = 2**31 - 1


def span(extent: Dim, start: Dim | None, end: Dim | None, step: int | None) -> Dim:
    """Return the number of elements from ``start`` to ``end``, or a fresh symbol."""
    if start is None or end is None or step is None:
        return unnamed()
    if isinstance(extent, int) and isinstance(start, int) and isinstance(end, int):
        if step < 0:
            start = max(start, -extent)
        return len(range(*slice(start, end, step).indices(extent)))
    try:
        if step < 0:
            return _backwards(extent, start, end, step)
        count = without_extrema(_between(start, end, extent))
        return (count + (step - 1)) // step
    except Undecided:
        return unnamed()


def _between(start: Dim, end: Dim, extent: Dim) -> Dim:
    """Return the number of indices in ``[0, extent]`` from ``start`` to ``end``."""
    last = _clamp(end, extent)
    if last == extent and at_least(start, 0):
        return maximum(extent - start, 0)
    first = _clamp(start, extent)
    if first == 0 or last == extent or at_least(last, first):
        return last - first
    return 0


def _clamp(bound: Dim, extent: Dim) -> Dim:
    """Return a bound as an index in ``[0, extent]``.

    Raises:
        Undecided: a bound with symbols may be outside.
    """
    if isinstance(bound, int) and abs(bound) >= FAR:
        return extent if bound > 0 else 0
    if isinstance(bound, int):
        inside = bound + extent if bound < 0 else bound
        return maximum(inside, 0) if bound < 0 else minimum(inside, extent)
    if not at_least(bound, 0):
        bound = bound + extent
        return bound if at_least(bound, 0) else 0
    return bound if at_least(extent, bound) else extent


def _backwards(extent: Dim, start: Dim, end: Dim, step: int) -> Dim:
    """Return the length of a whole axis read from its end."""
    from_end = start == -1 or (isinstance(start, int) and start >= FAR)
    to_start = isinstance(end, int) and end <= -FAR
    if not from_end or not to_start:
        raise Undecided("where it stops depends on the extent")
    return (extent - (step + 1)) // -step
