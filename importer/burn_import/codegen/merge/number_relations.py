"""Numbers of classes in terms of their constructor parameters, beyond multiples.

A constructor derives ``2 * size - 1``, ``size**2``, ``features**-0.5`` and
``(1, kernel_size[1])`` instead of taking them as further arguments.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from burn_import.codegen.merge.expression_slots import MISSING, WINDOWS
from burn_import.codegen.merge.parameter_names import is_width

#: Minimum number of different values for a line with any offset; two points always
#: have one.
COLLINEAR = 3
#: Slopes of such lines.
SLOPES = (1, 2, 3, 4)
#: How often the offset of a line is in the least number: widths that grow evenly have
#: lines through any two of them.
MUCH_LESS = 4
Row = Sequence[Any]
#: A parameter's name and its value in each class.
Known = tuple[str, Row]


def sizes(name: str, values: Row) -> Iterator[tuple[str, Row]]:
    """Yield numbers that belong to a size: of its square, and of its differences."""
    yield f"{name}**2", [v * v for v in values]
    yield f"2 * {name} - 1", [2 * v - 1 for v in values]


def quotients(known: Sequence[Known]) -> Iterator[tuple[str, Row]]:
    """Yield quotients of widths and numbers of heads."""
    for name, values in known:
        for other, row in known:
            pairs = list(zip(values, row, strict=True))
            fits = name != other and all(b and not a % b for a, b in pairs)
            if fits and is_width(name) and other == "heads":
                yield f"{name} // {other}", [a // b for a, b in pairs]


def differences(known: Sequence[Known], column: Row) -> Iterator[tuple[str, Row]]:
    """Yield differences of sizes: an axis is sliced from one size to another."""
    rows = [(name, values) for name, values in known if name.startswith("size")]
    for (name, values), (other, row) in permutations(rows, 2):
        pairs = zip(values, row, strict=True)
        yield f"{name} - {other}", tuple(a - b for a, b in pairs)
    for name, values in rows if MISSING not in column else ():
        whole = column[0] + values[0]
        yield f"{whole} - {name}", tuple(whole - size for size in values)


def line(name: str, values: Row, column: Row) -> str:
    """Return ``2 * name + 3`` if it equals the ``column``, else ""."""
    pairs = [(v, c) for v, c in zip(values, column, strict=True) if c is not MISSING]
    if len({v for v, _ in pairs}) < COLLINEAR:
        return ""
    for slope in SLOPES:
        offsets = {c - slope * v for v, c in pairs}
        offset = offsets.pop()
        if not offsets and 0 < abs(offset) * MUCH_LESS <= min(v for v, _ in pairs):
            product = name if slope == 1 else f"{slope} * {name}"
            return f"{product} {'+' if offset > 0 else '-'} {abs(offset)}"
    return ""


def root(known: Sequence[Known], column: Row) -> str:
    """Return ``(features // heads) ** -0.5`` if it rounds to the ``column``, else "".

    The column has numbers of float32 operations, where both are the same number.
    """
    if not all(isinstance(value, np.float32) for value in column):
        return ""
    for text, values in _bases(known):
        roots = [np.float32(v**-0.5) if v > 0 else None for v in values]
        if roots == list(column):
            return f"{text}**-0.5"
    return ""


def _bases(known: Sequence[Known]) -> Iterator[Known]:
    """Yield quotients of widths and heads, then all parameters."""
    yield from ((f"({text})", values) for text, values in quotients(known))
    yield from known


def as_pairs(label: str, values: Row) -> tuple[Any, ...]:
    """Return window options of which some are one number and some are several as
    pairs: ``(3, 3)`` for 3.
    """
    pairs = [value for value in values if isinstance(value, tuple)]
    lengths = {len(value) for value in pairs}
    is_plain = all(type(extent) is int for value in pairs for extent in value)
    if label not in WINDOWS or len(lengths) != 1 or not is_plain:
        return tuple(values)
    (length,) = lengths
    return tuple((v,) * length if type(v) is int else v for v in values)


def pair(known: Sequence[Known], column: Row) -> str:
    """Return ``(1, kernel_size[1] // 2)`` if it equals the ``column``, else ""."""
    present = [i for i, value in enumerate(column) if value is not MISSING]
    values = [column[i] for i in present]
    lengths = {len(v) if isinstance(v, tuple) else 0 for v in values}
    if len(lengths) != 1 or 0 in lengths:
        return ""
    (length,) = lengths
    for name, row in known:
        if "kernel" not in name:
            continue
        texts = []
        for position in range(length):
            rows = [row[i] for i in present]
            is_pair = all(isinstance(of, tuple) and len(of) == length for of in rows)
            own = [of[position] for of in rows] if is_pair else rows
            item = f"{name}[{position}]" if is_pair else name
            texts.append(_item(item, own, [value[position] for value in values]))
        if all(texts) and any(name in text for text in texts):
            return f"({', '.join(texts)})"
    return ""


def _item(name: str, values: Row, column: Row) -> str:
    """Return one number of a pair: a literal, a kernel's extent, or half of it."""
    if len(set(column)) == 1:
        return str(column[0])
    if list(values) == list(column):
        return name
    if all(type(v) is int for v in values):
        return f"{name} // 2" if [v // 2 for v in values] == list(column) else ""
    return ""


def unequal_to_one(known: Sequence[Known], having: Row) -> str:
    """Return ``kernel_size[1] != 1`` if it equals ``having``, else ""."""
    for name, row in known:
        if "kernel" not in name or not all(isinstance(v, tuple) for v in row):
            continue
        for position in range(len(row[0])):
            if [v[position] != 1 for v in row] == list(having):
                return f"{name}[{position}] != 1"
    return ""
