"""What a local value is called, by what it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from burn import ops
from burn_import.source.names import snake
from burn_import.source.trace import (
    Apply,
    Block,
    ModuleCall,
    Statement,
    Symbol,
    blocks_of,
)
from burn_import.source.walk import symbols_in

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
    r"[a-z]*_\d+|[a-z]{0,2}\d+|.*[:/.].*)$"
)


#: Functions after which an exporter calls their results, beside those of ours.
_FUNCTIONS = frozenset(
    {"addmm", "bmm", "cat", "clone", "convolution", "getitem", "mm", "select", "slice"}
    | {"unsafe_view", "view"}
)
#: What a stored operand of these primitives is called.
CONSTANT_ROLES = {
    "matmul": "weight",
    "linear": "weight",
    "add": "bias",
    "sub": "offset",
    "mul": "scale",
    "div": "scale",
    "take": "table",
    "where": "fill",
}


#: What the stored operands of a recurrent layer are called, in order.
_RECURRENT = {
    "lstm": ("x", "weight_ih", "weight_hh", "bias", "h0", "c0", "lengths", "peephole"),
    "gru": ("x", "weight_ih", "weight_hh", "bias", "h0", "lengths"),
    "rnn": ("x", "weight_ih", "weight_hh", "bias", "h0", "lengths"),
}


def constant_roles(block: Block) -> dict[str, str]:
    """What each stored array is, by name, from the primitive that reads it first."""
    roles: dict[str, str] = {}
    for statement in block.statements:
        if isinstance(statement, Apply):
            for place, arg in enumerate(statement.args):
                word = _constant_role(statement.primitive.name, place)
                for symbol in symbols_in(arg):
                    if symbol.constant:
                        roles.setdefault(symbol.constant, word)
        for inner in blocks_of(statement):
            roles = {**constant_roles(inner), **roles}
    return roles


def _constant_role(primitive: str, place: int) -> str:
    if primitive in _RECURRENT:
        return _RECURRENT[primitive][place]
    return CONSTANT_ROLES.get(primitive, "constant")


def meaningful(name: str) -> str:
    """An identifier for a value whose name in the file says something, else ""."""
    leaf = name.rpartition("/")[2]
    if not leaf or _MADE_UP.match(leaf) or len(leaf) > 24:
        return ""
    return snake(leaf)


def common_name(names: Sequence[str]) -> str:
    """What all names are but for a number at the end: ``past_key``; "" if nothing."""
    found = {re.sub(r"[_.]?\d+$", "", name.rpartition("/")[2]) for name in names}
    stem = found.pop() if len(found) == 1 else ""
    function = stem in _FUNCTIONS or hasattr(ops, stem)
    return "" if function else meaningful(stem)


def role(symbol: Symbol, statement: Statement) -> str:
    """A name for the result of ``statement``; "" if nothing better than x is known."""
    name = meaningful(symbol.name)
    if name:
        return name
    if isinstance(statement, ModuleCall):
        return _module_role(statement)
    if isinstance(statement, Apply):
        return ROLES.get(statement.primitive.name, "")
    return ""


def _module_role(statement: ModuleCall) -> str:
    words = [segment for segment in statement.path if not segment.isdigit()]
    name = snake(words[-1]) if words else ""
    return "" if name == "l" else name  # which looks like a one


def nested(names: list[str], statement: Statement) -> list[str]:
    """``names`` with parentheses where one result is a tuple: ``y, (h, c)``."""
    places = getattr(statement, "results", None) or range(len(names))
    found = []
    for place in places:
        inner = [place] if isinstance(place, int) else list(place)
        text = ", ".join(names[i] for i in inner)
        unread = all(names[i] == "_" for i in inner)
        whole = text if isinstance(place, int) else f"({text})"
        found.append("_" if unread else whole)
    return found
