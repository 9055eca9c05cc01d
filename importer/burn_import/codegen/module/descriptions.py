"""Docstrings of classes, and the lines on values in that of a module."""

from __future__ import annotations

from collections.abc import Sequence

from burn_import.provenance.path_segments import Path
from burn_import.structure import ModuleNode
from burn_import.tracing.identifiers import comment, snake
from burn_ir.containers import kind_of
from burn_ir.dim import symbol
from burn_ir.graph import Graph
from burn_ir.types import Type

#: Maximum length of the docstring of a class, which is one line.
DOC_ROOM = 78


def part_doc(part: ModuleNode, paths: list[Path], shown: bool = True) -> str:
    """Return a line with the path of a module, and the shapes it computes.

    Shapes are left out unless ``shown``, since modules with one class may differ in
    them.
    """
    if not part.path or not part.inputs or not part.outputs:
        return ""
    covered = covered_modules(paths)
    shapes = [
        shown_type(part.graph.types[name]).partition("[")[2]
        for name in (part.inputs[0], part.outputs[0])
    ]
    result = "same" if shapes[0] == shapes[1] else f"[{shapes[1]}"
    doc = f"{covered}: [{shapes[0]} -> {result}."
    short = shown and len(doc) <= DOC_ROOM
    return comment(doc if short else f"{covered}.", DOC_ROOM)


def covered_modules(paths: Sequence[Path]) -> str:
    """Return the first path and the number of others; a long path lacks its start."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    text = f"``{'.'.join(paths[0])}``{more}"
    for start in range(1, len(paths[0])):
        if len(text) < DOC_ROOM:
            break
        text = f"``...{'.'.join(paths[0][start:])}``{more}"
    return text


def describe(graph: Graph, names: list[str], values: tuple[str, ...]) -> list[str]:
    """Return documentation lines with name, dtype and shape of outputs.

    A different name in the file is appended.
    """
    width = max((len(name) for name in names), default=0)
    lines = []
    for name, value in zip(names, values, strict=True):
        value_type = graph.type(value)
        shown = "" if value_type is None else comment(shown_type(value_type))
        origin = origin_of(name, value)
        suffix = f"  ({origin})" if origin else ""
        lines.append(f"    {name:<{width}}  {shown}{suffix}")
    return lines


def origin_of(name: str, value: str) -> str:
    """Return a value's name in the file if it differs from ``name``, else ""."""
    same = name.rstrip("_").startswith(snake(value, "input").rstrip("_"))
    return "" if same else comment(value, 40)


def shown_type(value_type: Type) -> str:
    """Return the type, with long dimension expressions left open."""
    if kind_of(value_type) != "tensor":
        return value_type.name
    dims = value_type.shape or ()
    short = tuple(d if len(str(d)) <= 24 else symbol("?") for d in dims)
    return value_type.with_shape(None if value_type.shape is None else short).name
