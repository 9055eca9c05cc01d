"""Repeated modules of a skeleton: lists of equal modules, and classes of blocks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.progressions import progression
from burn_import.frontends.state_dicts.key_tree import Node
from burn_import.provenance.path_segments import Path
from burn_import.tracing.identifiers import MEMBERS, Namespace, plural, snake

#: The fewest numbered attributes that become a list.
_MANY = 8
#: The fewest blocks that get a class, and the fewest modules of one.
_BLOCKS, _SHORTEST = 3, 2
_FIELD = re.compile(r"self\.(\w*[A-Za-z])(0|[1-9]\d*) = (.*)", re.DOTALL)
_LAYER = re.compile(r"nn\.([A-Z][A-Za-z]*)")
#: Attributes of layers, by the first words of their constructors.
_ATTRIBUTES = {"Conv": "conv", "BatchNorm": "bn", "LayerNorm": "norm"}


def with_lists(text: ClassText) -> ClassText:
    """Return the class with lists of its attributes ``layer0``, ``layer1``, ...

    Record keys stay the same. The members have one constructor call, whose numbers
    may be an arithmetic progression.
    """
    groups = [
        (prefix, list(own)) for prefix, own in groupby(text.fields, key=_field_prefix)
    ]
    names = {line.partition(" = ")[0].removeprefix("self.") for line in text.fields}
    prefixes = [prefix for prefix, _ in groups]
    fields: list[str] = []
    record_names = dict(text.record_names)
    for prefix, lines in groups:
        name = plural(prefix)
        is_free = name not in names | MEMBERS and prefixes.count(prefix) == 1
        line = _list_field(name, lines) if prefix and is_free else ""
        fields += [line] if line else lines
        if line:
            first = _numbers(lines)[0]
            record_names[name] = f"{prefix}{{{first}}}"
    return replace(text, fields=fields, record_names=record_names)


def _field_prefix(line: str) -> str:
    match = _FIELD.fullmatch(line)
    return match[1] if match and not match[1].startswith("part_") else ""


def _numbers(lines: Sequence[str]) -> list[int]:
    matches = map(_FIELD.fullmatch, lines)
    return [int(match[2]) for match in matches if match]


def _list_field(name: str, lines: Sequence[str]) -> str:
    """Return the assignment of the list that replaces ``lines``, else ""."""
    numbers = _numbers(lines)
    calls = [line.partition(" = ")[2] for line in lines]
    is_consecutive = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    if len(lines) < _MANY or not is_consecutive or calls[0].startswith("nn.param"):
        return ""
    if any(call.startswith(("nn.buffer(", "nn.Module")) for call in calls):
        return ""
    if len(set(calls)) == 1:
        return f"self.{name} = nn.ModuleList({calls[0]} for _ in range({len(calls)}))"
    each = progression(calls)
    return each and f"self.{name} = nn.ModuleList({each} for i in range({len(calls)}))"


def blocks_of(node: Node) -> list[Node]:
    """Return the items of a list that are lists of layers and become classes.

    Authors build them by a function that returns an ``nn.Sequential``.
    """
    if not node.listed:
        return []
    blocks = [
        child
        for child in node.children.values()
        if child.listed
        and len(child.children) >= _SHORTEST
        and not any(inner.listed for inner in child.children.values())
    ]
    return blocks if len(blocks) >= _BLOCKS else []


def block_attributes(modules: Mapping[Path, str]) -> dict[str, str]:
    """Return an attribute for each module of a block, by its number.

    ``modules`` are constructor calls by path: ``conv`` of ``nn.Conv2d(3, 8)``.
    """
    names = Namespace(MEMBERS)
    return {
        path[0]: names.unique(_attribute(text))
        for path, text in modules.items()
        if len(path) == 1
    }


def block_name(word: str, fields: Sequence[str]) -> str:
    """Return the class name of a block in a list called ``word``."""
    if any("groups=" in line for line in fields):
        return "SeparableBlock"
    return word if word.endswith(("Block", "Layer")) else f"{word}Block"


def _attribute(text: str) -> str:
    match = _LAYER.match(text)
    kind = match[1] if match else text.partition("(")[0]
    words = [word for start, word in _ATTRIBUTES.items() if kind.startswith(start)]
    return words[0] if words else snake(kind)
