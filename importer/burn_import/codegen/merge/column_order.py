"""The order in which the columns of merged classes become constructor parameters."""

from collections.abc import Callable, Iterator, Sequence

from burn_import.codegen.merge.expression_slots import MISSING
from burn_import.codegen.merge.init_fields import Column
from burn_import.codegen.merge.parameter_names import is_width


def ascending_orders(columns: Sequence[Column]) -> Iterator[list[int]]:
    """Yield orders with sizes, and sizes and widths, from small to large.

    Larger numbers are then expressed by smaller ones.
    """
    yield _ascending(columns, lambda label: label == "size")
    yield _ascending(columns, lambda label: label == "size" or is_width(label))


def _ascending(columns: Sequence[Column], is_moved: Callable[[str], bool]) -> list[int]:
    """Return the order with the columns of some labels from small to large."""
    order = list(range(len(columns)))
    places = [
        at
        for at in order
        if is_moved(columns[at].label)
        and all(type(v) is int for v in columns[at].values)
    ]
    ascending = sorted(places, key=lambda at: columns[at].values)
    for position, at in zip(places, ascending, strict=True):
        order[position] = at
    return order


def rank(column: Column) -> int:
    """Return the order of a column: columns that must follow from others come last."""
    if is_last(column):
        return 2
    return int(MISSING in column.values and not column.derived)


def is_last(column: Column) -> bool:
    """Return whether a column is a number in code that only some classes run."""
    return column.derived and not column.field
