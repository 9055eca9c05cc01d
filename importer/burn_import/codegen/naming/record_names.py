"""Record keys of fields whose PyTorch names are no valid attributes here.

A child called ``boxes`` gets the attribute ``boxes_``, since modules have a method of
that name. So do ``_conv``, which begins with an underscore, and ``0`` among other
names. Classes list the original names in ``burn.nn.Module.record_names``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.provenance.path_segments import ROOT, Path, clean
from burn_import.provenance.weight_owners import is_key, original
from burn_import.structure.module_tree import Entry
from burn_import.tracing.identifiers import attribute
from burn_ir.graph import Graph

_FIELD = re.compile(r"self\.(\w+) = ")
#: torchvision has children called ``block1-0``, which is no valid attribute.
_NAME = re.compile(r"[\w-]+", re.ASCII)


def find_record_names(
    texts: Sequence[ClassText], entries: Sequence[Entry], graph: Graph
) -> dict[str, str]:
    """Return the author's name of each renamed attribute.

    Names are from keys of stored arrays and scopes of PyTorch's exporters. An
    attribute that would need two names keeps its own in keys, as does one whose
    name is in use.
    """
    authored: dict[str, set[str]] = {}
    for entry in entries:
        for ours, theirs in _renamed_segments(entry, graph):
            authored.setdefault(ours, set()).add(theirs)
    scopes: dict[str, set[str]] = {}
    if graph.producer.startswith("pytorch"):
        for segment in {segment for node in graph.nodes for segment in node.scope}:
            scopes.setdefault(attribute(segment), set()).add(segment)
    authored = {**scopes, **authored}
    names = {
        ours: theirs
        for ours, (theirs, *others) in authored.items()
        if not others and ours != theirs and _NAME.fullmatch(theirs)
    }
    fields = [set(_fields(text)) for text in texts]
    return {
        ours: theirs
        for ours, theirs in names.items()
        if not any(ours in own and theirs in own for own in fields)
    }


def _renamed_segments(entry: Entry, graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield the attributes in a key with the author's names, while both agree."""
    name = original(graph, entry.constant)
    if name not in graph.constants.trained and not is_key(graph.producer, name):
        return
    theirs = name.split(".")
    cleaned = clean(theirs)
    if cleaned[:1] == (ROOT,) and theirs[0] != ROOT:
        theirs = [ROOT, *theirs]
    for ours, plain, whole in zip(_field_path(entry), cleaned, theirs, strict=False):
        if ours not in (plain, f"part_{plain}"):
            return
        yield ours, whole


def _field_path(entry: Entry) -> Path:
    """Return the attributes in a key that are fields of generated classes."""
    return entry.key[:-1] if entry.layer else entry.key


def with_record_names(
    texts: Sequence[ClassText], names: Mapping[str, str]
) -> list[ClassText]:
    """Return ``texts`` with the record names of each class's fields."""
    return [
        replace(
            text,
            record_names=text.record_names
            | {n: names[n] for n in _fields(text) if n in names},
        )
        for text in texts
    ]


def key_of(entry: Entry, names: Mapping[str, str]) -> str:
    """Return the record key of a stored array, with the author's names."""
    own = _field_path(entry)
    shown = [names.get(segment, segment) for segment in own]
    return ".".join([*shown, *entry.key[len(own) :]])


def _fields(text: ClassText) -> Iterator[str]:
    """Yield the attributes that a class assigns in its constructor."""
    for line in text.fields:
        match = _FIELD.match(line)
        if match is not None:
            yield match[1]
