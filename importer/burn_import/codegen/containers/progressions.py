"""Constructor calls with arithmetic progressions of numbers, as one comprehension."""

import ast
from collections.abc import Sequence
from functools import lru_cache

from burn_import.codegen.syntax import replace_nodes


def progression(texts: Sequence[str]) -> str:
    """Return the source of the ``i``-th of ``texts``: ``Layer(64 + 32 * i)``.

    "" if the texts differ in more than integers, or if these are not arithmetic
    progressions.
    """
    rests, numbers = zip(*map(_without_numbers, texts), strict=True)
    if len(set(rests)) > 1 or any(" for " in text for text in texts):
        return ""
    columns = list(zip(*numbers, strict=True))
    if not all(map(_is_even, columns)):
        return ""
    terms = [_term(column[0], column[1] - column[0]) for column in columns]
    return replace_nodes(texts[0], zip(_integers(texts[0]), terms, strict=True))


def longest_run(texts: Sequence[str]) -> tuple[int, str]:
    """Return how many of ``texts``, from the first on, are one run, and its source.

    The source is that of :func:`progression`, or the text itself if all are equal.
    """
    count, source = 1, texts[0]
    while count < len(texts):
        each = progression(texts[: count + 1])
        if texts[count] == texts[0] == source:
            each = source
        if not each:
            break
        count, source = count + 1, each
    return count, source


@lru_cache(1_000)
def _without_numbers(text: str) -> tuple[str, tuple[int, ...]]:
    """Return an expression with 0 for each of its integers, and the integers."""
    nodes = _integers(text)
    numbers = tuple(number for node in nodes if (number := _integer(node)) is not None)
    return replace_nodes(text, [(node, "0") for node in nodes]), numbers


def _integers(text: str) -> list[ast.expr]:
    """Return the integers that are whole arguments, elements or indices, in order."""
    nodes = ast.walk(ast.parse(text, mode="eval"))
    operands = [one for node in nodes for one in _operands(node)]
    integers = [one for one in operands if _integer(one) is not None]
    return sorted(integers, key=lambda one: (one.lineno, one.col_offset))


def _operands(node: ast.AST) -> Sequence[ast.expr]:
    match node:
        case ast.Call(args=args, keywords=keywords):
            return [*args, *(keyword.value for keyword in keywords)]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return elements
        case ast.Subscript(slice=index):
            return [index]
    return []


def _integer(node: ast.expr) -> int | None:
    """Return the integer that an expression is, with its sign; None for others."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return sign * value


def _is_even(numbers: Sequence[int]) -> bool:
    """Return whether the numbers are an arithmetic progression."""
    pairs = zip(numbers, numbers[1:], strict=False)
    return len({after - before for before, after in pairs}) == 1


def _term(first: int, step: int) -> str:
    """Return the source of ``first + step * i``."""
    if not step:
        return str(first)
    product = "i" if abs(step) == 1 else f"{abs(step)} * i"
    if first:
        return f"{first} {'-' if step < 0 else '+'} {product}"
    return f"-{product}" if step < 0 else product
