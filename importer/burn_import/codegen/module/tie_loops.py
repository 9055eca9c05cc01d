"""Loops over the elements of a list whose weights are all tied to the first one's."""

import ast
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.syntax import (
    fields_of,
    list_items,
    range_call,
    repetition,
    statement_of,
)
from burn_import.tracing.identifiers import singular


def with_tie_loops(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` with one loop for ties that all elements of a list have.

    Ties of fewer than three elements, and of some elements only, stay assignments.
    """
    return [_with_loops(text) for text in texts]


def _with_loops(text: ClassText) -> ClassText:
    ties: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for line in text.fields:
        tie = _tie(line)
        if tie is not None:
            name, number, leaf = tie
            ties[name, leaf][number] = line
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


def _tie(line: str) -> tuple[str, int, str] | None:
    """Return list, index and attribute if a line ties an element to the first one.

    The line is ``self.layers[2].proj.weight = self.layers[0].proj.weight``.
    """
    statement = statement_of(line)
    if not isinstance(statement, ast.Assign):
        return None
    (target,) = statement.targets
    element = target
    while isinstance(element, ast.Attribute | ast.Subscript):
        outer = element.value
        if isinstance(outer, ast.Attribute) and ast.unparse(outer.value) == "self":
            break
        element = outer
    if not isinstance(element, ast.Subscript):
        return None
    items, index = ast.unparse(element.value), element.slice
    leaf = ast.unparse(target).removeprefix(f"{ast.unparse(element)}.")
    is_tied = ast.unparse(statement.value) == f"{items}[0].{leaf}"
    if not is_tied or not isinstance(index, ast.Constant):
        return None
    return items.removeprefix("self."), int(str(index.value)), leaf


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
