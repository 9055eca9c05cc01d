"""Paths of layers and scopes of nodes."""

from dataclasses import dataclass, field

from burn_import.provenance.path_segments import Path
from burn_import.structure.numeric_segments import without_false_lists


@dataclass
class Places:
    """Paths of layers and scopes of nodes, both by the node's identity.

    The path of a layer is its attribute path from the root. A layer runs in the
    scope around it, except that ``moved`` layers run in a scope further out.
    """

    layers: dict[int, Path] = field(default_factory=dict)
    scopes: dict[int, Path] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)


def with_names(node_paths: Places, homes: set[Path]) -> Places:
    """Rename numbers that are not list indices; ``homes`` has more module paths."""
    named = without_false_lists([*node_paths.layers.values(), *sorted(homes)])
    renamed_prefixes = {
        old[:length]: new[:length]
        for old, new in named.items()
        for length in range(len(old) + 1)
    }

    def renamed(path: Path) -> Path:
        lengths = range(len(path), -1, -1)
        length = next((n for n in lengths if path[:n] in renamed_prefixes), 0)
        return (*renamed_prefixes.get(path[:length], ()), *path[length:])

    return Places(
        {node: renamed(path) for node, path in node_paths.layers.items()},
        {node: renamed(path) for node, path in node_paths.scopes.items()},
    )
