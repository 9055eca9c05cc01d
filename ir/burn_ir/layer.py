"""Modules of ``burn.nn`` that are equivalent to nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class Keyword(tuple[str, Any]):
    """An argument of a module call that is passed by name: the name and the value."""


@dataclass(frozen=True)
class Layer:
    """A module of ``burn.nn`` that is equivalent to a node with weights or a state.

    ``name`` is the class, ``args`` and ``options`` its arguments in source,
    ``weights`` the operand position of each parameter, and ``data`` the operand
    positions of the call's arguments, with tuples for tuple arguments. ``results``
    are the node's results in the module's return value, where that has nested
    tuples, or a tuple of which the node has the first alone. ``keywords`` are more
    arguments of the call: operand positions, or a bool. Weights are float32, or of the
    dtype in ``options``, except for ``tables``, which have the operand's dtype.
    """

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    weights: Mapping[str, int]
    data: tuple[int | tuple[int, ...], ...] = (0,)
    tables: frozenset[str] = frozenset()
    results: tuple[int | tuple[int, ...], ...] | None = None
    keywords: Mapping[str, int | bool] = field(default_factory=dict)

    def arguments(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments of a module call from a node's operands."""
        named = (
            Keyword((name, at if isinstance(at, bool) else operands[at]))
            for name, at in self.keywords.items()
        )
        positional = (
            operands[p] if isinstance(p, int) else tuple(operands[i] for i in p)
            for p in self.data
        )
        return (*positional, *named)
