"""Repeated modules of a skeleton: lists of equal modules, and classes of blocks."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.progressions import progression
from burn_import.codegen.syntax import (
    ARRAYS,
    assigned_field,
    called_name,
    expression_of,
    statement_of,
)
from burn_import.frontends.state_dicts.key_tree import Node
from burn_import.provenance.path_segments import Path
from burn_import.tracing.identifiers import MEMBERS, Namespace, plural, snake

#: The fewest numbered attributes that become a list.
_MANY = 8
#: The fewest blocks that get a class, and the fewest modules of one.
_BLOCKS, _SHORTEST = 3, 2
_NUMBERED = re.compile(r"(\w*[A-Za-z])(0|[1-9]\d*)")
#: What is not listed: arrays, and lists themselves.
_NO_MEMBERS = {*ARRAYS, "nn.ModuleList", "nn.ModuleTuple"}
#: Attributes of layers, by the first words of their constructors.
_ATTRIBUTES = {"Conv": "conv", "BatchNorm": "bn", "LayerNorm": "norm"}


def with_lists(text: ClassText) -> ClassText:
    """Return the class with lists of its attributes ``layer0``, ``layer1``, ...

    Record keys stay the same. The members have one constructor call, whose numbers
    may be an arithmetic progression.
    """
    fields = list(map(_field, text.fields))
    groups = [
        (prefix, list(own)) for prefix, own in groupby(fields, attrgetter("prefix"))
    ]
    names = {one.name for one in fields} | MEMBERS
    prefixes = [prefix for prefix, _ in groups]
    lines: list[str] = []
    record_names = dict(text.record_names)
    for prefix, own in groups:
        name = plural(prefix)
        is_free = name not in names and prefixes.count(prefix) == 1
        source = _list_source(own) if prefix and is_free else ""
        lines += [f"self.{name} = {source}"] if source else [one.line for one in own]
        if source:
            record_names[name] = f"{prefix}{{{own[0].number}}}"
    return replace(text, fields=lines, record_names=record_names)


@dataclass(frozen=True)
class _Field:
    """An assignment of ``__init__``; ``prefix`` is "" if no number ends its name."""

    line: str
    name: str
    value: ast.expr | None
    prefix: str = ""
    number: int = 0


def _field(line: str) -> _Field:
    name, value = assigned_field(statement_of(line))
    match = _NUMBERED.fullmatch(name)
    if match is None or match[1].startswith("part_"):
        return _Field(line, name, value)
    return _Field(line, name, value, match[1], int(match[2]))


def _list_source(fields: Sequence[_Field]) -> str:
    """Return the source of the list that replaces ``fields``, else ""."""
    numbers, count = [one.number for one in fields], len(fields)
    is_consecutive = numbers == list(range(numbers[0], numbers[0] + count))
    classes = {called_name(one.value) for one in fields}
    if count < _MANY or not is_consecutive or classes & _NO_MEMBERS:
        return ""
    calls = [one.line.partition(" = ")[2] for one in fields]
    if len(set(calls)) == 1:
        return f"nn.ModuleList({calls[0]} for _ in range({count}))"
    each = progression(calls)
    return each and f"nn.ModuleList({each} for i in range({count}))"


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
    module, _, kind = called_name(expression_of(text)).rpartition(".")
    kind = re.split(r"\d", kind)[0] if module else kind
    words = [word for start, word in _ATTRIBUTES.items() if kind.startswith(start)]
    return words[0] if words else snake(kind)
