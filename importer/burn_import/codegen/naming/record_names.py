"""Record keys of fields whose PyTorch names are no valid attributes here.

A child called ``boxes`` gets the attribute ``boxes_``, since modules have a method of
that name. So do ``_conv``, which begins with an underscore, and ``0`` among other
names. Classes list the original names in ``burn.nn.Module.record_names``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.syntax import fields_of
from burn_import.provenance.path_segments import ROOT, Path, clean
from burn_import.provenance.weight_owners import is_key, original
from burn_import.structure.module_tree import Entry, Tree
from burn_import.tracing.identifiers import attribute
from burn_ir.graph import Graph

#: torchvision has children called ``block1-0``, which is no valid attribute.
_NAME = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True)
class RecordNames:
    """The author's names of renamed attributes, for each class or for all.

    ``by_class`` has, for attributes of classes whose stored arrays tell, the one name,
    or None where instances differ or the name is in use.
    """

    #: The class of each module, by the beginning of the keys of its arrays.
    classes: Mapping[Path, str]
    by_class: Mapping[tuple[str, str], str | None]
    anywhere: Mapping[str, str]
    #: What all keys begin with: the path of the module that the model consists of.
    prefix: str = ""

    def name(self, class_name: str, attribute: str) -> str:
        """Return the author's name of an attribute; "" is a class without modules."""
        if (class_name, attribute) in self.by_class:
            return self.by_class[class_name, attribute] or attribute
        return self.anywhere.get(attribute, attribute)

    def key_of(self, entry: Entry) -> str:
        """Return the record key of a stored array, with the author's names."""
        own = _field_path(entry)
        shown = [
            self.name(self.classes.get(own[:depth], ""), segment)
            for depth, segment in enumerate(own)
        ]
        start = [self.prefix] if self.prefix else []
        return ".".join([*start, *shown, *entry.key[len(own) :]])


def find_record_names(
    texts: Sequence[ClassText], entries: Sequence[Entry], tree: Tree
) -> RecordNames:
    """Return the author's name of each renamed attribute.

    Names are from keys of stored arrays and scopes of PyTorch's exporters. An
    attribute that would need two names keeps its own in keys, as does one whose
    name is in use.
    """
    graph, classes = tree.root.graph, tree.classes_by_path()
    of_class: dict[tuple[str, str], set[str]] = {}
    authored: dict[str, set[str]] = {}
    for entry in entries:
        for depth, ours, theirs in _authored_segments(entry, graph):
            authored.setdefault(ours, set()).add(theirs)
            class_name = classes.get(entry.key[:depth])
            if class_name:
                of_class.setdefault((class_name, ours), set()).add(theirs)
    scopes: dict[str, set[str]] = {}
    if graph.producer.startswith("pytorch"):
        for segment in {segment for node in graph.nodes for segment in node.scope}:
            scopes.setdefault(attribute(segment), set()).add(segment)
    fields = {text.name: {name for name, _ in fields_of(text)} for text in texts}
    anywhere = {
        ours: theirs
        for ours, theirs in _single_names({**scopes, **authored}).items()
        if not any(ours in own and theirs in own for own in fields.values())
    }
    single = _single_names(of_class)
    free = {
        (name, ours): theirs
        for (name, ours), theirs in single.items()
        if theirs not in fields.get(name, ()) or theirs == ours
    }
    by_class = {key: free.get(key) for key in of_class}
    return RecordNames(classes, by_class, anywhere, _prefix(entries, graph))


def _prefix(entries: Sequence[Entry], graph: Graph) -> str:
    """Return the author's path of the module that the model consists of."""
    prefix = graph.constants.prefix
    starts = (original(graph, e.constant).split(".")[: len(prefix)] for e in entries)
    authored = {
        ".".join(start)
        for start in starts
        if clean(start) == prefix and all(map(_NAME.fullmatch, start))
    }
    return authored.pop() if len(authored) == 1 else ".".join(prefix)


_Key = TypeVar("_Key")


def _single_names(authored: Mapping[_Key, set[str]]) -> dict[_Key, str]:
    """Return the names of attributes that have only one."""
    return {
        key: theirs
        for key, (theirs, *others) in authored.items()
        if not others and _NAME.fullmatch(theirs)
    }


def _authored_segments(entry: Entry, graph: Graph) -> Iterator[tuple[int, str, str]]:
    """Yield depth, attribute and author's name in a key, while both agree."""
    name = original(graph, entry.constant)
    if name not in graph.constants.trained and not is_key(graph.producer, name):
        return
    theirs = name.split(".")
    cleaned = clean(theirs)
    if cleaned[:1] == (ROOT,) and theirs[0] != ROOT:
        theirs = [ROOT, *theirs]
    prefix = graph.constants.prefix
    if cleaned[: len(prefix)] == prefix:
        cleaned, theirs = cleaned[len(prefix) :], theirs[len(prefix) :]
    segments = zip(_field_path(entry), cleaned, theirs, strict=False)
    for depth, (ours, plain, whole) in enumerate(segments):
        if ours not in (plain, f"part_{plain}"):
            return
        yield depth, ours, whole


def _field_path(entry: Entry) -> Path:
    """Return the attributes in a key that are fields of generated classes."""
    return entry.key[:-1] if entry.layer else entry.key


def with_record_names(
    texts: Sequence[ClassText], names: RecordNames
) -> list[ClassText]:
    """Return ``texts``, the root first, with the record names of their fields."""
    root, *others = (replace(t, record_names=_names_of(t, names)) for t in texts)
    return [replace(root, record_prefix=names.prefix), *others]


def _names_of(text: ClassText, names: RecordNames) -> dict[str, str]:
    authored = {name: names.name(text.name, name) for name, _ in fields_of(text)}
    renamed = {ours: theirs for ours, theirs in authored.items() if ours != theirs}
    return text.record_names | renamed
