"""Tied weights: one array with several keys, ``lm_head.weight = wte.weight``.

PyTorch lists a tied weight under each of its names. The modules here do the same and
share one array; the record stores it once.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from burn.dtypes import is_float
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.numbered_siblings import moved_path, siblings_in
from burn_import.codegen.syntax import assigned_field, statement_of
from burn_import.provenance.path_segments import Path
from burn_import.provenance.trainable import is_trained
from burn_import.provenance.weight_owners import (
    is_authored,
    is_dotted,
    is_uniform,
    original,
)
from burn_import.rewriting.arrays import memory_of
from burn_import.structure import ModuleNode, Tree
from burn_import.structure.module_tree import Entry, calls_of
from burn_ir.graph import Graph

#: Number of elements up to which a buffer of several modules is stored for each.
_COPIED = 1 << 14


@dataclass(frozen=True)
class TiedKey:
    """A key whose array is that of another key."""

    key: Path
    first: Path


def without_repetitions(entries: Sequence[Entry], graph: Graph) -> list[Entry]:
    """Return the entries with one per key, if their arrays are equal.

    A module that is called both as a whole and layer by layer has several, and the
    file may have a copy of the array for each call.
    """
    first: dict[Path, Entry] = {}
    unique = []
    for entry in entries:
        original = first.setdefault(entry.key, entry)
        same = original.constant == entry.constant
        if original is entry or not (same or _are_equal_arrays(graph, original, entry)):
            unique.append(entry)
    return unique


def find_ties(entries: Sequence[Entry], graph: Graph) -> list[TiedKey]:
    """Return the keys whose arrays are those of other keys.

    Two layers are tied if the file has one array for them, unless all its elements
    are equal: exporters merge equal arrays, such as new biases. Some exporters
    store a projection to a vocabulary separately from the table that it is tied to,
    or the transpose of an author's parameter: these are tied if the values are
    equal.
    """
    ties: list[TiedKey] = []
    first: dict[tuple[str, tuple[int, ...]], Entry] = {}
    backs: list[Entry] = []
    # The layer with the array's name in the file is the one that others are tied to.
    shared = _first_names(graph)
    for entry in sorted(entries, key=lambda e: not _is_named(e, graph)):
        array = graph.constants[entry.constant]
        name = original(graph, entry.constant)
        if name in shared:
            name = shared[name]
        elif not _may_be_tied(entry, graph):
            continue
        first_entry = first.setdefault((name, array.shape), entry)
        if first_entry is not entry and _are_equal_arrays(graph, first_entry, entry):
            if first_entry in backs and entry.layer == "Embedding":
                first[name, array.shape] = entry  # to which the projection is tied
                ties = [_redirect(tie, first_entry, entry) for tie in ties]
            else:
                ties.append(TiedKey(entry.key, first_entry.key))
        elif entry.layer == "Linear" and array.ndim == 2:
            backs.append(entry)
    tables = [e for e in first.values() if _may_be_projected_by(e, graph)]
    for back in backs:
        table = next((t for t in tables if _are_equal_arrays(graph, t, back)), None)
        if table is not None:
            ties.append(TiedKey(back.key, table.key))
    return ties


def _first_names(graph: Graph) -> dict[str, str]:
    """Return the first name of each tensor that the file lists repeatedly."""
    constants = graph.constants
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in constants.trained:
        if name in constants and constants[name].size:
            groups.setdefault(memory_of(constants[name]), []).append(name)
    tied = [names for names in groups.values() if len(names) > 1]
    return {name: names[0] for names in tied for name in names}


def _may_be_tied(entry: Entry, graph: Graph) -> bool:
    """Return whether an array may be a tied weight because its contents are equal.

    A small buffer is copied: nothing trains it, and each module has its own key.
    """
    array, name = graph.constants[entry.constant], original(graph, entry.constant)
    if not is_float(array.dtype):
        return False
    if not (entry.layer or is_dotted(name) or is_authored(graph, entry.constant)):
        return False
    is_buffer = not entry.layer and not is_trained(graph, entry.constant)
    if is_buffer and array.size <= _COPIED:
        return False
    return array.size >= 2 and not is_uniform(array)


def _may_be_projected_by(entry: Entry, graph: Graph) -> bool:
    """Return whether a linear layer may use this array's transpose."""
    own = not entry.layer and is_authored(graph, entry.constant)
    return own or entry.layer == "Embedding"


def _redirect(tie: TiedKey, original: Entry, entry: Entry) -> TiedKey:
    """Return ``tie``, redirected to ``entry`` if it refers to ``original``."""
    return TiedKey(tie.key, entry.key) if tie.first == original.key else tie


def _is_named(entry: Entry, graph: Graph) -> bool:
    return ".".join(entry.key) == original(graph, entry.constant)


def unique_entries(entries: Iterable[Entry], ties: Sequence[TiedKey]) -> list[Entry]:
    """Return the entries that a record stores: each array once."""
    tied = {tie.key for tie in ties}
    return [entry for entry in entries if entry.key not in tied]


def with_ties(
    texts: Sequence[ClassText],
    tree: Tree,
    entries: Sequence[Entry],
    ties: list[TiedKey],
) -> list[ClassText]:
    """Return ``texts`` with an assignment per tie, in the innermost common class.

    An ``nn.Sequential`` has no class: the enclosing class makes the ties in it.
    """
    run = _Writer(tree, entries, texts)
    lines: dict[str, list[str]] = {}
    for tie in ties:
        name, line = run.line(tie)
        lines.setdefault(name, []).append(line)
    return [_with_lines(text, lines.get(text.name, [])) for text in texts]


def _with_lines(text: ClassText, ties: list[str]) -> ClassText:
    """Return a class with assignments, in place of the fields that they replace."""
    tied = {name for tie in ties if (name := assigned_field(statement_of(tie))[0])}
    fields = [f for f in text.fields if assigned_field(statement_of(f))[0] not in tied]
    return replace(text, fields=fields + ties)


class _Writer:
    def __init__(
        self, tree: Tree, entries: Iterable[Entry], texts: Sequence[ClassText]
    ) -> None:
        self.root = tree.root
        self.classes = {text.name for text in texts}
        self.siblings = {t.name: siblings_in(t.record_names) for t in texts}
        self.class_of = {part.path: part.class_name for part in tree.parts}
        self.count = Counter(part.class_name for part in tree.parts)
        paths = [*(e.key for e in entries), *(part.path for part in tree.parts)]
        self.children: dict[Path, set[str]] = {}
        for path in paths:
            for length in range(len(path)):
                self.children.setdefault(path[:length], set()).add(path[length])

    def line(self, tie: TiedKey) -> tuple[str, str]:
        """Return the class that makes a tie, and the assignment."""
        part, around = self.root, True
        while around:
            around = False
            for inner in _inside(part):
                path, alone = inner.path, self._has_own_class(inner)
                if alone and path == tie.key[: len(path)] == tie.first[: len(path)]:
                    part, around = inner, True
                    break
        key, first = (self.access(p, len(part.path)) for p in (tie.key, tie.first))
        return part.class_name, f"{key} = {first}"

    def _has_own_class(self, part: ModuleNode) -> bool:
        """Return whether ``part`` has a class that no other module shares."""
        has_class = not part.sequence and part.class_name in self.classes
        return has_class and self.count[part.class_name] == 1

    def access(self, path: Path, start: int) -> str:
        """Return the expression for ``path`` in the module at ``path[:start]``."""
        text = "self"
        for length in range(start, len(path)):
            segment = path[length]
            siblings = self.siblings.get(self.class_of.get(path[:length], ""), [])
            name, *rest = moved_path((segment,), siblings)
            if rest:
                text += f".{name}[{rest[0]}]"
                continue
            listed = all(name.isdigit() for name in self.children[path[:length]])
            name = f"part_{segment}" if segment.isdigit() else segment
            text += f"[{segment}]" if listed else f".{name}"
        return text


def _inside(part: ModuleNode) -> list[ModuleNode]:
    return [call.part for item in part.items for call in calls_of(item)]


def _are_equal_arrays(graph: Graph, a: Entry, b: Entry) -> bool:
    """Return whether two arrays have the same dtype, shape and elements."""
    x, y = graph.constants[a.constant], graph.constants[b.constant]
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.ndim and not (x[:1] == y[:1]).all():
        return False
    return np.array_equal(x, y)
