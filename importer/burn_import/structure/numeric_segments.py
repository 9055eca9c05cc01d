"""Numbered segments of paths that are no places in a list, as names of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from burn_import.provenance.path_segments import Path

#: A list has at most so many places, and four more for each module in it.
MOST_EMPTY = 64


def without_false_lists(paths: Iterable[Path]) -> Mapping[Path, Path]:
    """``paths`` whose numbers are written as names (``part_0``), by what they were.

    What holds numbered modules is a list if it holds nothing else, and has few empty
    places: an attribute cannot be a number, and each empty place is a module.
    """
    children: dict[Path, set[str]] = {}
    known = list(dict.fromkeys(paths))
    for path in known:
        for length, segment in enumerate(path):
            children.setdefault(path[:length], set()).add(segment)
    false = {path for path, names in children.items() if _is_false_list(names)}
    changed = {path: _named(path, false, children) for path in known}
    return {path: named for path, named in changed.items() if named != path}


def joined(path: Path, start: int) -> Path:
    """``path`` whose segments from ``start`` on are one name.

    It begins with a segment that is no number, so that it can name an attribute.
    """
    while start and path[start].isdigit():
        start -= 1
    return (*path[:start], "_".join(path[start:]))


def is_sparse(numbers: Iterable[int]) -> bool:
    """Whether a list with modules at these places would have too many empty ones."""
    places = list(numbers)
    return max(places) >= 4 * len(places) + MOST_EMPTY


def _is_false_list(names: set[str]) -> bool:
    numbers = [int(name) for name in names if name.isdigit()]
    return bool(numbers) and (len(numbers) < len(names) or is_sparse(numbers))


def _named(path: Path, false: set[Path], children: Mapping[Path, set[str]]) -> Path:
    found = []
    for length, segment in enumerate(path):
        if segment.isdigit() and path[:length] in false:
            segment = f"part_{segment}"
            while segment in children[path[:length]]:
                segment += "_"
        found.append(segment)
    return tuple(found)
