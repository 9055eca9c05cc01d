"""Validation of the number and kinds of operands and attributes.

The declaration is the operator's class: the parameters of ``infer`` are its operands,
and the annotations of its fields are the kinds of its attributes.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from burn_ir.containers import kind_of
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, hints
from burn_ir.types import Type


@dataclass(frozen=True)
class Arity:
    """The minimum and maximum number of operands, and which may be omitted."""

    least: int
    most: int | None
    optional: tuple[bool, ...]
    rest_optional: bool
    #: The number of operands before the variadic ones.
    plain: int
    #: The kinds of each operand, and of the variadic ones.
    kinds: tuple[frozenset[str], ...]
    rest_kinds: frozenset[str]

    @property
    def shown(self) -> str:
        """The number for error messages: ``2``, ``2 to 3``, ``1 or more``."""
        if self.most is None:
            return f"{self.least} or more"
        return (
            str(self.least)
            if self.least == self.most
            else f"{self.least} to {self.most}"
        )

    def takes(self, position: int) -> frozenset[str]:
        """Return the kinds of value that the operand at ``position`` may have."""
        if position < len(self.kinds):
            return self.kinds[position]
        return self.rest_kinds

    def omits(self, position: int) -> bool:
        """Return whether the operand at ``position`` may be omitted."""
        if position < len(self.optional):
            return self.optional[position]
        return self.rest_optional


@cache
def arity(cls: type[Op]) -> Arity:
    """Return the number of operands that the operator takes."""
    positional, variadic = _parameters(cls.infer)
    _, endless = _parameters(cls.lower)
    most = None if endless else len(_parameters(cls.lower)[0])
    if variadic is None:
        most = len(positional)
    least = sum(p.default is inspect.Parameter.empty for p in positional)
    rest_optional = variadic is not None and "None" in str(variadic.annotation)
    if variadic is not None and not positional and not rest_optional:
        least = 1
    optional = tuple("None" in str(p.annotation) for p in positional)
    return Arity(
        least,
        most,
        optional,
        rest_optional,
        len(positional),
        tuple(_kinds(p.annotation) for p in positional),
        _kinds(variadic.annotation) if variadic is not None else frozenset(),
    )


def _kinds(annotation: Any) -> frozenset[str]:
    """Return the kinds of value that a parameter's annotation allows."""
    words = set(re.findall(r"\w+", str(annotation)))
    if words & {"AnyType", "Any"}:
        return frozenset({"tensor", "sequence", "optional", "map"})
    named = {word.removesuffix("Type").lower() for word in words if "Type" in word}
    return frozenset({kind or "tensor" for kind in named})


def _parameters(
    function: Any,
) -> tuple[list[inspect.Parameter], inspect.Parameter | None]:
    """Return the parameters after ``self``, and the variadic one or None."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    rest = [p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    plain = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return plain, rest[0] if rest else None


def check_operands(op: Op, operands: Sequence[Type | None]) -> None:
    """Check the number and kinds of operands of ``op``, and which are omitted.

    Raises:
        InvalidOperand: they are not as declared.
    """
    expected = arity(type(op))
    count = len(operands)
    if count < expected.least or (expected.most is not None and count > expected.most):
        raise InvalidOperand(f"expected {expected.shown} inputs, got {count}")
    for position, operand in enumerate(operands):
        if operand is None:
            if not expected.omits(position):
                raise InvalidOperand(f"expected input {position}, got none")
        elif kind_of(operand) not in expected.takes(position):
            kinds = " or ".join(sorted(expected.takes(position)))
            raise InvalidOperand(
                f"expected input {position} to be a {kinds}, got {operand.name}"
            )


def check_attributes(cls: type[Op], values: dict[str, Any]) -> None:
    """Check that every value is of its attribute's declared kind.

    Raises:
        InvalidOperand: one is not.
    """
    for name, hint in hints(cls).items():
        if name in values and not _has_type(values[name], hint):
            got = values[name]
            shown = repr(got)[:80] if isinstance(got, _PLAIN) else type(got).__name__
            raise InvalidOperand(f"expected {name} {_shown(hint)}, got {shown}")


_PLAIN = (str, bytes, int, float, tuple, list, type(None))
_NUMBERS = {
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
    str: (str,),
}


def _has_type(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_has_type(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple | list) and all(
            _has_type(v, inner[0]) for v in value
        )
    if origin is not None:  # an array of any dtype
        return isinstance(value, origin)
    return isinstance(value, _NUMBERS.get(hint, (hint,)))


def _shown(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"among {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, types.UnionType):
        inner = [h for h in get_args(hint) if h is not type(None)]
        return " or ".join(_shown(h) for h in inner)
    if get_origin(hint) is tuple:
        return f"several of {_shown(get_args(hint)[0])}"
    words = {int: "an integer", float: "a number", str: "a string"}
    return words.get(hint, "a tensor or graph")
