"""Segments of keys that scopes lack, as in ``layers.0.layers.1``.

TorchScript calls the second list ``layers.1`` in ``layers.0``, which reads like a list
in a list. The keys of layers with that scope tell what it lacks.
"""

from collections.abc import Iterable, Mapping

from burn_import.provenance.path_segments import Path, insertions


def uncalled_path(pairs: Iterable[tuple[Path, Path]]) -> tuple[Path, Path]:
    """Return the path that all scopes lack, and the scope in front of it.

    Scopes lack a module of which only submodules or methods are called:
    ``model.v.decoder(x)`` runs in the scope ``decoder``. Weight names have it.
    ``pairs`` are scopes and paths of layers.
    """
    options: set[tuple[Path, Path]] | None = None
    for scope, path in pairs:
        own = insertions(scope, path)
        options = own if options is None else options & own
    return min(options or {((), ())}, key=lambda one: len(one[0]))


def complete_scopes(pairs: Iterable[tuple[Path, Path]]) -> dict[Path, Path]:
    """Return the paths of modules by their scopes, where these lack segments.

    ``pairs`` are scopes and paths of layers. Scopes of several paths are left out.
    """
    paths: dict[Path, set[Path]] = {}
    for scope, path in pairs:
        inserted = insertions(scope, path)
        start = max((len(before) for before, _ in inserted), default=0)
        for length in range(1, len(scope)):
            more = len(path) - len(scope) if inserted and length > start else 0
            paths.setdefault(scope[:length], set()).add(path[: length + more])
    return {
        scope: path
        for scope, (path, *others) in paths.items()
        if not others and path != scope and len(path) > len(scope)
    }


def completed(scope: Path, paths: Mapping[Path, Path]) -> Path:
    """Return the path of ``scope``, by the longest beginning in ``paths``."""
    for length in range(len(scope), 0, -1):
        if scope[:length] in paths:
            return (*paths[scope[:length]], *scope[length:])
    return scope
