"""Renaming of numeric path segments that are not list indices."""

from collections.abc import Iterable, Mapping

from burn_import.provenance.path_segments import Path

#: A list of n modules has fewer than 4 * n plus this many indices.
MOST_EMPTY = 64


def without_false_lists(paths: Iterable[Path]) -> Mapping[Path, Path]:
    """Return ``paths`` with non-index numbers renamed (``part_0``).

    The result maps old paths to new ones. A module with numbered children is a list
    if it has only such children and few gaps: attributes cannot be numbers, and
    each gap becomes an empty module.
    """
    children: dict[Path, set[str]] = {}
    distinct = list(dict.fromkeys(paths))
    for path in distinct:
        for length, segment in enumerate(path):
            children.setdefault(path[:length], set()).add(segment)
    false = {path for path, names in children.items() if _is_false_list(names)}
    changed = {path: _renamed_path(path, false, children) for path in distinct}
    return {path: named for path, named in changed.items() if named != path}


def join_segments(path: Path, start: int) -> Path:
    """Return ``path`` with its segments from ``start`` on joined to one name.

    The name begins with a non-numeric segment, so that it can be an attribute.
    """
    while start and path[start].isdigit():
        start -= 1
    return (*path[:start], "_".join(path[start:]))


def is_sparse(numbers: Iterable[int]) -> bool:
    """Return whether a list with modules at these indices has too many gaps."""
    indices = list(numbers)
    return max(indices) >= 4 * len(indices) + MOST_EMPTY


def _is_false_list(names: set[str]) -> bool:
    numbers = [int(name) for name in names if name.isdigit()]
    return bool(numbers) and (len(numbers) < len(names) or is_sparse(numbers))


def _renamed_path(
    path: Path, false: set[Path], children: Mapping[Path, set[str]]
) -> Path:
    segments = []
    for length, segment in enumerate(path):
        if segment.isdigit() and path[:length] in false:
            segment = f"part_{segment}"
            while segment in children[path[:length]]:
                segment += "_"
        segments.append(segment)
    return tuple(segments)
