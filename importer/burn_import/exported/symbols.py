"""Extents of tensors as PyTorch writes them: ``Mul(Integer(4), Symbol('s53'))``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

from burn.record.errors import shown
from burn_ir import InvalidModel
from burn_ir.dim import Dim, Poly, floor_div, symbol, unnamed

_LONGEST = 2000
#: What numbers the expressions of SymPy are made of.
_CALLS: dict[str, Callable[..., Any]] = {
    "Add": lambda *terms: reduce(add, terms),
    "Mul": lambda *factors: reduce(mul, factors),
    "FloorDiv": floor_div,
    "Integer": int,
    "CleanDiv": floor_div,
}


class Symbols:
    """The symbols of one program, each with a name that says what it counts."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def call(self, raw: str, name: str) -> None:
        """Give the symbol ``raw`` a name, unless it has one."""
        if raw not in self.names:
            taken, unique, number = set(self.names.values()), name, 1
            while unique in taken:
                number += 1
                unique = f"{name}{number}"
            self.names[raw] = unique

    def extent(self, size: Any) -> Dim:
        """The extent that a ``SymInt`` of the schema stands for.

        Expressions of other functions become a fresh symbol: any extent.

        Raises:
            InvalidModel: it is neither a number nor an expression.
        """
        if isinstance(size, dict) and isinstance(size.get("as_int"), int):
            return int(size["as_int"])
        text = size.get("as_expr", {}) if isinstance(size, dict) else None
        text = text.get("expr_str") if isinstance(text, dict) else None
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise InvalidModel(f"expected an extent, got {shown(size)}")
        try:
            tree = ast.parse(text, mode="eval").body
            found = self.value(tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InvalidModel(f"expected an expression, got {shown(text)}") from error
        return found if isinstance(found, int | Poly) else unnamed()

    def value(self, tree: ast.expr) -> Dim:
        """What an expression is."""
        if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
            return int(tree.value)
        if isinstance(tree, ast.Name):
            return symbol(self.names.get(tree.id, tree.id))
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            name = tree.func.id
            if (
                name == "Symbol"
                and tree.args
                and isinstance(tree.args[0], ast.Constant)
            ):
                raw = str(tree.args[0].value)
                return symbol(self.names.get(raw, raw))
            if name in _CALLS:
                made: Dim = _CALLS[name](*(self.value(arg) for arg in tree.args))
                return made
        return unnamed()


def raw_symbols(size: Any) -> list[str]:
    """The symbols of an extent that is one alone: ``["s53"]``, else nothing."""
    text = size.get("as_expr", {}).get("expr_str", "") if isinstance(size, dict) else ""
    try:
        tree = ast.parse(text, mode="eval").body if len(text) <= _LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if isinstance(tree, ast.Name):
        return [tree.id]
    is_symbol = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
    if is_symbol and tree.func.id == "Symbol" and tree.args:  # type: ignore[union-attr]
        first = tree.args[0]  # type: ignore[union-attr]
        return [str(first.value)] if isinstance(first, ast.Constant) else []
    return []
