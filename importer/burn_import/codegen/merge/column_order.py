"""The order in which the columns of merged classes become constructor parameters."""

from collections.abc import Sequence

from burn_import.codegen.merge.expression_slots import MISSING
from burn_import.codegen.merge.init_fields import Column


def by_size(columns: Sequence[Column]) -> list[int]:
    """Return the order of columns, with sizes among each other from small to large.

    Larger ones are expressed by smaller ones.
    """
    order = list(range(len(columns)))
    at_size = [at for at in order if _is_size(columns[at])]
    ascending = sorted(at_size, key=lambda at: columns[at].values[0])
    for position, at in zip(at_size, ascending, strict=True):
        order[position] = at
    return order


def _is_size(column: Column) -> bool:
    """Return whether all classes have the column, an extent without another name."""
    return column.label == "size" and all(type(v) is int for v in column.values)


def rank(column: Column) -> int:
    """Return the order of a column: columns that must follow from others come last."""
    if is_last(column):
        return 2
    return int(MISSING in column.values and not column.derived)


def is_last(column: Column) -> bool:
    """Return whether a column is a number in code that only some classes run."""
    return column.derived and not column.field
