"""Classes that differ in numbers only become one, with constructor parameters.

Blocks of a network are often the same but for how wide they are. Their classes are
written first, then compared, those that hold others after these: where all that differs
are literals in the calls that make layers, the first class takes these as parameters.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from burn import nn
from burn_import.emit.text import ClassText
from burn_import.source.names import Namespace

#: A class with more parameters than this explains less than two classes do.
MOST_PARAMETERS = 5
#: Modules that only hold others: what they are given are no numbers of theirs.
HOLDERS = frozenset({"ModuleList", "ModuleTuple", "Sequential", "Identity"})
_COMMENT = re.compile(r"\s*# [^'\"]*$")
_CLASS = re.compile(r"(?<![\w.])([A-Z]\w*)\(\)")


@dataclass(frozen=True)
class Parameter:
    """A constructor parameter, and the places (of all literals) that it stands at."""

    name: str
    kind: str
    places: frozenset[int]


@dataclass
class Families:
    """What is known of each class by its name."""

    #: The call that makes one: ``Block(64, 128)``.
    calls: dict[str, str] = field(default_factory=dict)
    #: The constructor's parameters of the classes that stay.
    parameters: dict[str, list[Parameter]] = field(default_factory=dict)
    #: Which classes a class stands for, itself included.
    members: dict[str, list[str]] = field(default_factory=dict)
    #: Classes whose members' shapes differ.
    open_shapes: set[str] = field(default_factory=set)

    def call(self, name: str) -> str:
        """The source that makes what was the class called ``name``."""
        return self.calls.get(name, f"{name}()")

    def parameterised(self, text: ClassText) -> ClassText:
        """``text`` with its parameters in place of the literals."""
        parameters = self.parameters.get(text.name, [])
        names = {place: p.name for p in parameters for place in p.places}
        count, fields = 0, []
        for line in text.fields:
            slots = list(_slots(line, self.parameters))
            at = {i: names[count + i] for i in range(len(slots)) if count + i in names}
            fields.append(_filled(line, slots, at))
            count += len(slots)
        constructor = "".join(f", {p.name}: {p.kind}" for p in parameters)
        body = text.body if text.name not in self.open_shapes else bare(text.body)
        return replace(text, fields=fields, body=body, constructor=constructor)


def families(texts: Sequence[ClassText]) -> Families:
    """Which of the classes are one, from those that hold no others upwards."""
    found = Families()
    named = {text.name: text for text in texts}
    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            heights[name] = 0  # nothing holds itself
            inner = [n for n in _held(named[name]) if n in named]
            heights[name] = 1 + max(map(height, inner), default=0)
        return heights[name]

    levels: dict[int, list[ClassText]] = {}
    for text in texts:
        levels.setdefault(height(text.name), []).append(text)
    for level in sorted(levels):
        _unite(levels[level], found)
    return found


def _held(text: ClassText) -> list[str]:
    return [name for line in text.fields for name in _CLASS.findall(line)]


@dataclass(frozen=True)
class _Slot:
    """A literal in a call that makes a module."""

    start: int
    end: int
    value: Any
    text: str
    label: str
    attribute: str


def _slots(line: str, classes: Mapping[str, list[Parameter]]) -> Iterator[_Slot]:
    """The literals of a field in the order of the source."""
    tree = ast.parse(line).body[0]
    assert isinstance(tree, ast.Assign) and isinstance(tree.targets[0], ast.Attribute)
    attribute = tree.targets[0].attr
    found = []
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        labels = _labels(call, classes)
        for place, arg in enumerate(call.args):
            if labels is not None:
                label = labels[min(place, len(labels) - 1)] if labels else "size"
                found.append((arg, label))
        if labels is not None:
            found += [(k.value, k.arg) for k in call.keywords if k.arg]
    for node, label in sorted(found, key=lambda pair: pair[0].col_offset):
        try:
            value = ast.literal_eval(node)
        except ValueError:
            continue  # a module, a dtype
        start, end = node.col_offset, node.end_col_offset or 0
        yield _Slot(start, end, value, line[start:end], label, attribute)


def _labels(call: ast.Call, classes: Mapping[str, list[Parameter]]) -> list[str] | None:
    """What the positional arguments of a call that makes a module are called."""
    function = call.func
    if isinstance(function, ast.Name):
        return (
            [p.name for p in classes[function.id]] if function.id in classes else None
        )
    if not isinstance(function, ast.Attribute) or function.attr in HOLDERS:
        return None
    made = getattr(nn, function.attr, None)
    if not inspect.isclass(made):
        return ["size"]  # nn.parameter, nn.buffer
    return list(inspect.signature(made).parameters)


def _filled(line: str, slots: Sequence[_Slot], texts: Mapping[int, str]) -> str:
    """``line`` with other texts for some of its slots."""
    for index in reversed(range(len(slots))):
        if index in texts:
            slot = slots[index]
            line = line[: slot.start] + texts[index] + line[slot.end :]
    return line


def _unite(texts: Sequence[ClassText], found: Families) -> None:
    """Find the families among classes that hold only what was compared before."""
    groups: dict[Any, list[tuple[ClassText, list[_Slot]]]] = {}
    for text in texts:
        fields = [_CLASS.sub(lambda m: found.call(m[1]), line) for line in text.fields]
        slots = [list(_slots(line, found.parameters)) for line in fields]
        templates = tuple(
            _filled(line, own, dict.fromkeys(range(len(own)), "?"))
            for line, own in zip(fields, slots, strict=True)
        )
        alone = text.name if text.root or not text.body else ""
        key = (templates, tuple(bare(text.plain)), alone)
        groups.setdefault(key, []).append((text, [s for own in slots for s in own]))
    for members in groups.values():
        _family(members, found)


def _family(members: list[tuple[ClassText, list[_Slot]]], found: Families) -> None:
    first = members[0][0]
    columns = list(zip(*(slots for _, slots in members), strict=True))
    parameters = _parameters(columns)
    kinds = {p.kind for p in parameters}
    if len(members) == 1 or len(parameters) > MOST_PARAMETERS or "" in kinds:
        for text, _ in members:
            found.members[text.name] = [text.name]
            found.parameters[text.name] = []
        return
    found.parameters[first.name] = parameters
    found.members[first.name] = [text.name for text, _ in members]
    if any(text.plain != first.plain for text, _ in members):
        found.open_shapes.add(first.name)
    for row, (text, _) in enumerate(members):
        given = [columns[min(p.places)][row].text for p in parameters]
        found.calls[text.name] = f"{first.name}({', '.join(given)})"


def _parameters(columns: Sequence[tuple[_Slot, ...]]) -> list[Parameter]:
    """One parameter for all places whose literals differ in the same way."""
    places: dict[tuple[str, ...], list[int]] = {}
    for place, column in enumerate(columns):
        texts = tuple(slot.text for slot in column)
        if len(set(texts)) > 1:
            places.setdefault(texts, []).append(place)
    names = Namespace(["self"])
    made = []
    for where in places.values():
        column = columns[where[0]]
        label = column[0].label
        if label in names.taken:
            label = f"{column[0].attribute}_{label}"
        made.append(Parameter(names.unique(label), _kind(column), frozenset(where)))
    return made


def _kind(column: Sequence[_Slot]) -> str:
    """The annotation of a parameter; "" if it would be one of many kinds."""
    kinds = {type(slot.value) for slot in column}
    words = {int: "int", float: "float", bool: "bool"}
    if kinds == {tuple}:
        return "tuple[int, ...]" if _whole(column) else ""
    return words.get(kinds.pop(), "") if len(kinds) == 1 else ""


def _whole(column: Sequence[_Slot]) -> bool:
    return all(isinstance(item, int) for slot in column for item in slot.value)


def bare(lines: Sequence[str]) -> list[str]:
    """``lines`` without comments."""
    return [kept for line in lines if (kept := _COMMENT.sub("", line)).strip()]
