"""Reshapes that keep or join axes, for the source of their calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import prod

from burn_ir.dim import Dim, Poly
from burn_ir.types import is_unnamed


def with_open_size(target: Sequence[Dim], extents: Sequence[Dim]) -> list[Dim]:
    """Return ``target`` with -1 for an extent that a reshape of ``extents`` infers.

    It is the first one that a name and a number make up, like ``64 * batch`` of
    windows; else a number that the reshape keeps: the last one before the axes that
    change, the sequence axis, where heads are split off, or the batch axis; else the
    first that joins several axes, like the places of an image; else a batch of one.
    The source then works for inputs of other sizes.
    """
    result = list(target)
    if -1 in target or 0 in target or any(map(is_unnamed, target)):
        return result
    for axis, extent in enumerate(target):
        if isinstance(extent, Poly) and not str(extent).isidentifier():
            result[axis] = -1
            return result
    pairs = zip(target, extents, strict=False)
    leading = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    numbers = [axis for axis, extent in enumerate(leading) if isinstance(extent, int)]
    if len(target) > 2 and numbers and (numbers[-1] or leading[0] != 1):
        result[numbers[-1]] = -1
        return result
    apart = _unchanged_axes(target, extents)
    joined = _joined_axis(target, extents)
    is_fixed = len(target) > 2 and all(isinstance(extent, int) for extent in target)
    if is_fixed and apart:
        has_features = apart[-1] == len(target) - 1 and len(apart) > 1
        result[apart[-2 if has_features else -1]] = -1
    elif joined is not None and joined < len(target) - 1:  # the last one is of features
        result[joined] = -1
    elif is_fixed and numbers:
        result[0] = -1
    return result


def _unchanged_axes(target: Sequence[Dim], extents: Sequence[Dim]) -> list[int]:
    """Return the first axes of ``target`` with a fixed, unchanged extent above 1."""
    numbers = [extent for extent in extents if extent != 1]
    axes = [axis for axis, extent in enumerate(target) if extent != 1]
    pairs = zip(axes, numbers, strict=False)
    equal = [
        axis for axis, _ in takewhile(lambda pair: target[pair[0]] == pair[1], pairs)
    ]
    return [axis for axis in equal if isinstance(target[axis], int)]


def _joined_axis(target: Sequence[Dim], extents: Sequence[Dim]) -> int | None:
    """Return the axis of ``target`` that joins several of ``extents``.

    None if there is none, or if the extents of both do not correspond. Of several, as
    of windows in rows and columns, only the first axis of all is returned.
    """
    sources = [extent for extent in extents if extent != 1]
    joined = []
    for axis, dim in enumerate(target):
        count, rest = 0, dim
        while sources and rest != 1:
            first = sources[0]
            if rest == first:
                count, rest = count + 1, 1
                del sources[0]
            elif not isinstance(rest, int) or not isinstance(first, int):
                return None
            elif rest % first == 0:
                count, rest = count + 1, rest // first
                del sources[0]
            elif first % rest == 0:
                sources[0], rest = first // rest, 1
            else:
                return None
        joined += [axis] if count > 1 else []
    return joined[0] if joined and (len(joined) == 1 or joined[0] == 0) else None


Extents = Sequence[Dim] | None


def joined_axes(extents: Extents, target: Extents) -> tuple[int, ...] | None:
    """Return the first and last axis that a reshape to ``target`` flattens, or None.

    The last is left out where it is the last axis of all, which is preferred if
    there is a choice.
    """
    if extents is None or target is None:
        return None
    count = len(extents) - len(target) + 1
    for start in reversed(range(1, len(target) if count > 1 else 1)):
        joined = prod(extents[start : start + count], start=1)
        if (*extents[:start], joined, *extents[start + count :]) == tuple(target):
            end = start + count - 1
            return (start,) if end == len(extents) - 1 else (start, end)
    return None
