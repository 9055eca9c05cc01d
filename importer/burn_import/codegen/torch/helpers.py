"""The helper functions and modules that are copied into generated files."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FOLDER = files("burn_templates") / "torch"


@dataclass(frozen=True)
class Helper:
    """A definition of ``burn_templates/torch``, and the helpers that it calls."""

    name: str
    source: str
    calls: tuple[str, ...]


@cache
def helpers() -> dict[str, Helper]:
    """Return all helpers by name, in the order of their files."""
    definitions: dict[str, Helper] = {}
    for path in sorted(FOLDER.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".py"):
            definitions.update(
                (one.name, one) for one in _definitions(path.read_text("ascii"))
            )
    return definitions


def _definitions(text: str) -> Iterator[Helper]:
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            source = ast.get_source_segment(text, node) or ""
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            calls = sorted(n for n in names if n[0] == "_" != n and n != node.name)
            yield Helper(node.name, source, tuple(calls))


def with_calls(names: Iterable[str]) -> list[Helper]:
    """Return the helpers of these names and all that they call, each once."""
    available, selected = helpers(), {name for name in names if name in helpers()}
    while True:
        more = {call for name in selected for call in available[name].calls} - selected
        if not more:
            return [one for name, one in available.items() if name in selected]
        selected |= more
