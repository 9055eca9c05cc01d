"""Liveness of names: those that statements set, and those read elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from burn_import.frontends.torchscript.expressions import Frame


def left_by(node: ast.AST, frame: Frame) -> list[str]:
    """Return the names that a statement sets and that may be read after it."""
    read = _read_outside(node, frame)
    stored = dict.fromkeys(
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )
    return [name for name in stored if name in read or name in frame.names]


def _read_outside(node: ast.AST, frame: Frame) -> set[str]:
    """Return the names that the function reads outside of a statement."""
    body = frame.function.node if frame.function is not None else node
    inside = {id(part) for part in ast.walk(node)}
    return {
        part.id
        for part in ast.walk(body)
        if isinstance(part, ast.Name)
        and isinstance(part.ctx, ast.Load)
        and id(part) not in inside
    }


def appended_names(body: Sequence[ast.stmt]) -> list[str]:
    """Return the names of lists that statements only append to.

    Functions that receive such a list may do more.
    """
    appended: dict[str, None] = {}
    others: set[str] = set()
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                names = [x.id for x in part.args[:1] if isinstance(x, ast.Name)]
                if part.func.attr == "append":
                    appended.update(dict.fromkeys(names))
                elif part.func.attr in _IN_PLACE:
                    others.update(names)
    return [name for name in appended if name not in others]


#: Functions that change a list, except ``append``.
_IN_PLACE = frozenset(
    {*("pop", "insert", "extend", "_set_item", "reverse", "clear", "sort", "remove")}
)


def local_names(node: ast.For | ast.While, frame: Frame) -> set[str]:
    """Return the names that each iteration sets before reading, and nothing else reads.

    They have values before the loop if its first iterations were unrolled.
    """
    read = _read_outside(node, frame)
    if isinstance(node, ast.While):
        read |= {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    local: set[str] = set()
    for statement in node.body:
        names = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        read |= {n.id for n in names if isinstance(n.ctx, ast.Load)} - local
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            local |= {n.id for n in names if isinstance(n.ctx, ast.Store)} - read
    return local
