"""Symbolic extents as PyTorch writes them: ``Mul(Integer(4), Symbol('s53'))``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from burn.record.errors import shown
from burn_import.provenance.axis_names import AXES
from burn_import.tracing.identifiers import symbol_name
from burn_ir import InvalidModel
from burn_ir.dim import Dim, Poly, floor_div, symbol
from burn_ir.error_context import FAULTS
from burn_ir.errors import Undecided

#: Bounds from the first number up count as none, those up to the second are PyTorch's
#: defaults.
_ENDLESS, _USUAL = 2**31 - 1, 2


def named_symbols(symbols: Symbols, inputs: Mapping[str, Sequence[Any]]) -> None:
    """Name every symbol (``s77``) after the first axis that has it.

    Axes that are a single symbol come before those that are expressions.
    """
    for alone in (True, False):
        for sizes in inputs.values():
            axes = AXES.get(len(sizes), ())
            for index, size in enumerate(sizes):
                name = axes[index] if index < len(axes) else f"extent{index}"
                for raw, whole in symbols_in(size):
                    if whole is alone:
                        symbols.call(raw, name if whole else f"{name}_unit")


def export_range_note(symbols: Symbols, ranges: Any) -> tuple[str, ...]:
    """Return a sentence about the ranges that the program was exported for, if any.

    ``ranges`` are the file's, by symbol; entries without two numbers are ignored.
    """
    bounds = []
    for raw, name in symbols.names.items():
        limits = ranges.get(raw) if isinstance(ranges, dict) else None
        low, high = (
            (
                limits.get(end)
                if isinstance(limits, dict) and type(limits.get(end)) is int
                else None
            )
            for end in ("min_val", "max_val")
        )
        # PyTorch's default range: dynamic extents are 2 or more, bounded by int64.
        if high is not None and high < _ENDLESS:
            bounds.append(f"{name} {low or 0} to {high}")
        elif low is not None and low > _USUAL:
            bounds.append(f"{name} {low} or more")
    return (f"Exported for {', '.join(bounds)}.",) if bounds else ()


_LONGEST = 2000
#: The most terms of a product, since each factor multiplies their number.
_MOST_TERMS = 256
_LARGEST = 2**63 - 1
#: Tokens of SymPy expressions: names, numbers, quoted names, punctuation.
_TEXT = re.compile(r"(?:[A-Za-z_]\w*+|\d++(?![A-Za-z_])|'[\w.]*+'|[(),=*+ -])*+", re.A)


def _product(*factors: Dim) -> Dim:
    if prod(len(f.terms) for f in factors if isinstance(f, Poly)) > _MOST_TERMS:
        raise ValueError("a product of long sums")
    result: Dim = 1
    for factor in factors:
        result = result * factor
    return result


def _sum(*terms: Dim) -> Dim:
    result: Dim = 0
    for term in terms:
        result = result + term
    return result


def _remainder(a: Dim, b: Dim) -> Dim:
    return a - floor_div(a, b) * b


#: Functions that construct numbers.
_CALLS: dict[str, Callable[..., Dim]] = {
    "Add": _sum,
    "CleanDiv": floor_div,
    "FloorDiv": floor_div,
    "Integer": lambda number: number,
    "Mod": _remainder,
    "Mul": _product,
    "PythonMod": _remainder,
}


class Symbols:
    """The symbols of one program, with descriptive names."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.dims_by_text: dict[str, Dim] = {}

    def call(self, raw: str, name: str) -> str:
        """Return a name for symbol ``raw``: ``name``, numbered if it is taken."""
        if raw not in self.names:
            names, unique, number = set(self.names.values()), name, 1
            while unique in names:
                number += 1
                unique = f"{name}{number}"
            self.names[raw] = unique
        return self.names[raw]

    def extent(self, size: Any) -> Dim:
        """Return the extent of a ``SymInt`` of the schema.

        Expressions with unsupported functions become a new symbol.

        Raises:
            InvalidModel: it is neither a number nor an expression.
        """
        number = size.get("as_int") if isinstance(size, dict) else None
        if number is not None:
            if type(number) is not int or not 0 <= number <= _LARGEST:
                raise InvalidModel(f"expected an extent, got {shown(number)}")
            return int(number)
        text = _text(size)
        if text not in self.dims_by_text:
            try:
                dim = self.value(_tree(text))
            except FAULTS as error:
                message = f"expected an expression, got {shown(text)}"
                raise InvalidModel(message) from error
            if dim is None:
                dim = symbol(self.call(text, "extent"))
            self.dims_by_text[text] = dim
        return self.dims_by_text[text]

    def value(self, tree: ast.expr) -> Dim | None:
        """Return the value of an expression; None if it is unknown."""
        if isinstance(tree, ast.Constant) and type(tree.value) is int:
            return tree.value
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            number = self.value(tree.operand)
            return None if number is None else -number
        name = _symbol(tree)
        if name is not None:
            return symbol(self.call(name, symbol_name(name, "extent")))
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            arguments = [self.value(arg) for arg in tree.args]
            values = [arg for arg in arguments if arg is not None]
            if tree.func.id in _CALLS and len(values) == len(arguments):
                return _apply(tree.func.id, values)
        return None


def _apply(function: str, operands: Sequence[Dim]) -> Dim | None:
    """Return the extent of a call; None if no polynomial is equal to it."""
    try:
        return _CALLS[function](*operands)
    except Undecided:
        if not any(isinstance(x, Poly) for x in operands[1:]):
            raise
        return None  # such as a quotient by a symbol


def _text(size: Any) -> str:
    """Return the expression of an extent."""
    expression = size.get("as_expr") if isinstance(size, dict) else None
    text = expression.get("expr_str") if isinstance(expression, dict) else None
    if not isinstance(text, str) or len(text) > _LONGEST or not _TEXT.fullmatch(text):
        raise InvalidModel(f"expected an extent, got {shown(size)}")
    return text


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError("no expression") from error


def _symbol(tree: ast.expr) -> str | None:
    """Return the symbol in ``s53`` or ``Symbol('s53')``; None for other expressions."""
    if isinstance(tree, ast.Name):
        return tree.id
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return None
    first = tree.args[0] if tree.func.id == "Symbol" and tree.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    return None


def symbols_in(size: Any) -> Iterator[tuple[str, bool]]:
    """Yield the symbols of an extent, and whether each is the whole extent.

    Raises:
        InvalidModel: the extent is malformed.
    """
    if isinstance(size, dict) and size.get("as_int") is not None:
        return
    text = _text(size)
    try:
        tree = _tree(text)
        names = list(_symbols(tree))
    except FAULTS as error:
        raise InvalidModel(f"expected an expression, got {shown(text)}") from error
    for name in names:
        yield name, _symbol(tree) is not None


def _symbols(tree: ast.expr) -> Iterator[str]:
    name = _symbol(tree)
    if name is not None:
        yield name
    elif isinstance(tree, ast.Call):
        for argument in tree.args:
            yield from _symbols(argument)
