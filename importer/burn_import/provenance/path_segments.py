"""Module paths from the segments of names: ``encoder.layers.0``."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from burn_import.tracing.identifiers import attribute

#: The attributes that lead from the root to a module.
Path = tuple[str, ...]

#: The attribute that holds the model if its keys begin with numbers.
ROOT = "layers"
#: Largest nesting depth of modules; a corrupt file may have deeper paths.
_DEEPEST = 24
_SEPARATORS = re.compile(r"[./]")
_LIST_INDEX = re.compile(r"0|[1-9][0-9]{0,3}")
#: How PyTorch writes a member of a module that defines ``__getattr__``.
_LOOKUP = re.compile(
    r"""(?:\.__dict__\[['"]_modules['"]\]|\._modules)\[['"]([^'"]+)['"]\]"""
)


def clean(segments: Sequence[str]) -> Path:
    """Return path segments as identifiers; numbers stay, as indices of a list."""
    path: list[str] = []
    for segment in segments:
        for piece in _SEPARATORS.split(segment):
            if piece:
                path.append(piece if _is_number(piece) else attribute(piece))
    del path[_DEEPEST:]
    return (ROOT, *path) if path and path[0].isdigit() else tuple(path)


def without_lookups(text: str) -> str:
    """Return a recorded path with attributes for lookups of modules by name.

    ``model.__dict__['_modules']['blocks'].0`` is ``model.blocks.0``, as in its keys.
    """
    return _LOOKUP.sub(r".\1", text)


def _is_number(piece: str) -> bool:
    """Return whether a segment is a list index: ``12``, but not ``012`` or a date."""
    return _LIST_INDEX.fullmatch(piece) is not None


def common(paths: Sequence[Path]) -> Path:
    """Return the longest common prefix of ``paths``."""
    first, last = min(paths), max(paths)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]


def insertions(scope: Path, path: Path) -> set[tuple[Path, Path]]:
    """Return where segments inserted into ``scope`` give ``path``.

    Each pair has the segments before them, and the inserted ones. The last segment of
    ``scope`` is the module itself, with nothing behind it.
    """
    more = len(path) - len(scope)
    return {
        (scope[:at], path[at : at + more])
        for at in range(len(scope))
        if more > 0 and (*scope[:at], *path[at : at + more], *scope[at:]) == path
    }


class ScopePaths(NamedTuple):
    """Paths of modules by the scopes of their nodes.

    All scopes in ``around`` lack ``above``, a module of which only submodules or
    methods are called: ``model.v.decoder(x)`` runs in the scope ``decoder``. The scopes
    in ``containers`` lack an ``nn.ModuleDict``, which PyTorch's exporter leaves out.
    """

    around: Path = ()
    above: Path = ()
    containers: Mapping[Path, Path] = MappingProxyType({})

    def path(self, scope: Path) -> Path:
        """Return the path of the module at ``scope``."""
        depth = len(self.around)
        if scope and scope[:depth] == self.around:
            scope = (*self.around, *self.above, *scope[depth:])
        lengths = (n for n in range(len(scope), 0, -1) if scope[:n] in self.containers)
        length = next(lengths, 0)
        return (*self.containers.get(scope[:length], ()), *scope[length:])


def scope_paths(pairs: Sequence[tuple[Path, Path]]) -> ScopePaths:
    """Return paths by scope from the scopes of layers and the paths of their weights.

    All layers in a scope must agree.
    """
    options = [insertions(scope, path) for scope, path in pairs]
    shared = set.intersection(*options) if options else set()
    first = min(shared or {((), ())}, key=lambda one: len(one[0]))
    outer = ScopePaths(*first)
    paths: dict[Path, set[Path]] = {}
    for scope, path in ((outer.path(scope), path) for scope, path in pairs):
        moved = {
            scope[: len(before) + 1]: (*before, *inserted, scope[len(before)])
            for before, inserted in insertions(scope, path)
        }
        for length in range(1, len(scope)):
            own = scope[:length]
            paths.setdefault(own, set()).add(moved.get(own, own))
    single = {
        scope: modules.pop() for scope, modules in paths.items() if len(modules) == 1
    }
    return outer._replace(containers={k: v for k, v in single.items() if k != v})
