"""Selection of parameters and modules by patterns of their paths."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase


def matches(path: str, pattern: str) -> bool:
    """Return whether ``path`` matches ``pattern``, or is a descendant of a matching
    path.

    Patterns are those of :mod:`fnmatch`; ``*`` matches dots as well. ``"head"`` selects
    ``head.weight``, ``"*.bias"`` every bias of a module.
    """
    return fnmatchcase(path, pattern) or fnmatchcase(path, pattern + ".*")


def selected(paths: Iterable[str], pattern: str) -> list[str]:
    """Return the paths that match ``pattern``, in order.

    Raises:
        ValueError: no path matches; the message lists some existing paths.
    """
    candidates = list(paths)
    chosen = [path for path in candidates if matches(path, pattern)]
    if not chosen:
        shown = ", ".join(candidates[:8]) + (", ..." if len(candidates) > 8 else "")
        raise ValueError(
            f"expected a pattern of paths, got {pattern!r}; there are {shown}"
        )
    return chosen


def outermost(paths: Collection[str], pattern: str) -> list[str]:
    """Return the modules that match ``pattern`` and lie in no other that does.

    An exact path is that module alone: paths of modules inside match as well.

    Raises:
        ValueError: no path matches; the message lists some existing paths.
    """
    chosen = [pattern] if pattern in paths else selected(paths, pattern)
    return [
        path
        for path in chosen
        if not any(path.startswith(f"{other}.") for other in chosen)
    ]
