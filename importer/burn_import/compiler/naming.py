"""What a local value is called, by what it is."""

from __future__ import annotations

import re

from burn_import.compiler.names import snake
from burn_import.compiler.trace import Apply, Choice, ModuleCall, Statement, Symbol

#: Results of these primitives are known by a noun.
ROLES = {
    "softmax": "weights",
    "sigmoid": "gate",
    "mean": "mean",
    "sum": "total",
    "max": "peak",
    "sqrt": "root",
    "exp": "exps",
    "equal": "same",
    "not_equal": "differs",
    "logical_not": "flag",
    "less": "below",
    "greater": "above",
    "shape": "shape",
    "size": "size",
    "take": "rows",
    "arange": "positions",
    "concat": "joined",
    "split": "part",
    "lstm": "hidden",
    "pad": "padded",
    "where": "chosen",
}
#: Names that exporters make up say nothing: ``12``, ``node_7``, ``Conv_3_output_0``.
_MADE_UP = re.compile(
    r"(?i)^(\d.*|.*\d{3,}.*|.*(_|:)?output_?\d*|(node|val|t|tmp|tensor|value|var)_?\d+|"
    r"[a-z]*_\d+|.*[:/.].*)$"
)


def role(symbol: Symbol, statement: Statement) -> str:
    """A name for the result of ``statement``; "" if nothing better than x is known."""
    leaf = symbol.name.rpartition("/")[2]
    if leaf and not _MADE_UP.match(leaf) and len(leaf) <= 24:
        return snake(leaf)
    if isinstance(statement, ModuleCall):
        return _module_role(statement)
    if isinstance(statement, Apply):
        return ROLES.get(statement.primitive.name, "")
    assert isinstance(statement, Choice)
    return ""


def _module_role(statement: ModuleCall) -> str:
    words = [segment for segment in statement.path if not segment.isdigit()]
    return snake(words[-1]) if words else ""
