"""Loops over the elements of a list whose weights are all tied to the first one's."""

import ast
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.syntax import fields_of, list_items, range_call, repetition
from burn_import.tracing.identifiers import singular

#: An assignment that ties an element of a list to the first one.
_TIE = re.compile(r"self\.(\w+)\[(\d+)\]\.(\S+) = self\.\1\[0\]\.\3")


def with_tie_loops(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` with one loop for ties that all elements of a list have.

    Ties of fewer than three elements, and of some elements only, stay assignments.
    """
    return [_with_loops(text) for text in texts]


def _with_loops(text: ClassText) -> ClassText:
    ties: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for line in text.fields:
        match = _TIE.fullmatch(line)
        if match is not None:
            ties[match[1], match[3]][int(match[2])] = line
    loops: dict[str, list[str]] = defaultdict(list)
    replaced: set[str] = set()
    for (name, leaf), lines in ties.items():
        if len(lines) > 1 and set(lines) == set(range(1, _length(text, name))):
            loops[name].append(leaf)
            replaced.update(lines.values())
    if not loops:
        return text
    fields = [line for line in text.fields if line not in replaced]
    for name, leaves in loops.items():
        fields += _loop(name, leaves)
    return replace(text, fields=fields)


def _loop(name: str, leaves: Sequence[str]) -> list[str]:
    """Return the lines of the loop over a list."""
    element = singular(name)
    element = f"{element}_" if element == name else element
    lines = [f"    {element}.{leaf} = self.{name}[0].{leaf}" for leaf in leaves]
    return [f"for {element} in self.{name}[1:]:", *lines]


def _length(text: ClassText, name: str) -> int:
    """Return the number of elements of a list of modules, 0 if it is not known."""
    call = dict(fields_of(text)).get(name)
    if not isinstance(call, ast.Call):
        return 0
    items = list_items(call)
    loop = repetition(items[0])[1] if len(items) == 1 else None
    if loop is None or isinstance(items[0], ast.Starred):
        return len(items)
    times = range_call(loop)
    number = times.args[0] if times is not None else None
    return int(str(number.value)) if isinstance(number, ast.Constant) else 0
