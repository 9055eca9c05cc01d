"""The order of definitions in a standalone module."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from burn_import.standalone.library import Definition
from burn_import.standalone.pieces import Piece
from burn_import.standalone.reach import Reach

T = TypeVar("T")


def in_order(reach: Reach) -> list[Definition]:
    """Definitions by module, each behind those that it needs when it is executed.

    The bodies of functions are executed later.
    """
    needed = {d: list(_needed(reach, d)) for d in reach.on_tensors}
    modules: dict[str, list[Definition]] = {}
    for definition in sorted(needed, key=_position):
        modules.setdefault(definition.module, []).append(definition)

    def before(module: str) -> Iterator[str]:
        for definition in modules[module]:
            yield from (other.module for other in needed[definition])

    result: list[Definition] = []
    for module in _sorted(modules, before):
        result += [
            d
            for d in _sorted(modules[module], lambda d: needed[d])
            if d.module == module
        ]
    return result


def _position(definition: Definition) -> tuple[str, bool, int]:
    """Replacements stand behind what is left of a module."""
    own = definition.file.module == definition.module
    return definition.module, not own, definition.node.lineno


def _sorted(items: Iterable[T], before: Callable[[T], Iterable[T]]) -> list[T]:
    """``items`` behind what has to be before them, in the order given otherwise."""
    result: dict[T, None] = {}
    entered: set[T] = set()

    def place(item: T) -> None:
        if item in entered:
            return
        entered.add(item)
        for other in before(item):
            place(other)
        result[item] = None

    for item in items:
        place(item)
    return list(result)


def _needed(reach: Reach, definition: Definition) -> Iterator[Definition]:
    """The definitions that have to exist when a definition is executed."""
    if not definition.is_type:
        for piece in reach.pieces(definition):
            yield from _eager(piece, definition)


def _eager(piece: Piece, owner: Definition) -> Iterator[Definition]:
    lazy = set()
    for node in piece.nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef):
                lazy |= {id(n) for s in inner.body for n in ast.walk(s)}
                for argument in ast.walk(inner.args):
                    if isinstance(argument, ast.arg) and argument.annotation:
                        lazy |= {id(n) for n in ast.walk(argument.annotation)}
                if inner.returns:
                    lazy |= {id(n) for n in ast.walk(inner.returns)}
            elif isinstance(inner, ast.AnnAssign):
                lazy |= {id(n) for n in ast.walk(inner.annotation)}
            elif isinstance(inner, ast.Lambda):
                lazy |= {id(n) for n in ast.walk(inner.body)}
    for reference in piece.names.references:
        meaning = reference.meaning
        if isinstance(meaning, Definition) and meaning is not owner:
            if id(reference.node) not in lazy:
                yield meaning
