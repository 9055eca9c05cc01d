"""Flattened axes that differ between bodies, as reshapes that may be equal.

A block that only some bodies run may change the rank: then the others flatten other
axes to the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from burn import ops
from burn_import.codegen.merge.unified_body import Body
from burn_import.tracing.trace import Apply, Block, Statement

#: The operands of a ``flatten`` after the first: the axes.
Axes = tuple[Any, ...]


@dataclass(frozen=True)
class Flattened:
    """Axes whose flattenings become reshapes in all of the unified bodies.

    With ``is_inferred`` the first extent of such a shape is -1 if it is symbolic and
    the others are numbers: one of several bodies has a single window, the others join
    windows and batch.
    """

    axes: frozenset[Axes] = frozenset()
    is_inferred: bool = False


def differing_axes(bodies: Sequence[Body]) -> Iterator[Flattened]:
    """Yield the axes that some, but not all of the bodies flatten."""
    axes: list[frozenset[Axes]] = [
        frozenset(_flattened(body.trace.body.statements)) for body in bodies
    ]
    differing = frozenset().union(*axes) - axes[0].intersection(*axes[1:])
    if differing:
        yield Flattened(differing)
        yield Flattened(differing, is_inferred=True)


def _flattened(statements: Sequence[Statement]) -> Iterator[Axes]:
    for statement in statements:
        if isinstance(statement, Apply) and statement.primitive is ops.flatten:
            yield statement.args[1:]


def with_reshapes(body: Body, flattened: Flattened) -> Body:
    """Return ``body`` with reshapes to the same shape instead of such flattenings."""
    block = body.trace.body
    statements = as_reshapes(block.statements, flattened)
    return replace(
        body, trace=replace(body.trace, body=Block(statements, block.results))
    )


def as_reshapes(
    statements: Sequence[Statement], flattened: Flattened
) -> list[Statement]:
    """Return the statements with reshapes for the flattenings of the axes."""
    return [_as_reshape(statement, flattened) for statement in statements]


def _as_reshape(statement: Statement, flattened: Flattened) -> Statement:
    if not isinstance(statement, Apply):
        return statement
    result, args = statement.targets[0].type, statement.args
    if result is None or not result.shape:
        return statement
    if statement.primitive is ops.reshape and flattened.is_inferred:
        if not isinstance(args[1], tuple | list) or -1 not in args[1][1:]:
            return statement
    elif statement.primitive is not ops.flatten or args[1:] not in flattened.axes:
        return statement
    first, *others = result.shape
    is_open = flattened.is_inferred and all(isinstance(n, int) for n in others)
    shape = (-1, *others) if is_open and not isinstance(first, int) else result.shape
    if statement.primitive is ops.reshape and shape[0] != -1:
        return statement
    args = (args[0], tuple(shape))
    return replace(statement, primitive=ops.reshape, args=args, static={})
