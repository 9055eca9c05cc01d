"""Flattened axes that differ between bodies, as reshapes that may be equal.

A block that only some bodies run may change the rank: then the others flatten other
axes to the same shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from burn import ops
from burn_import.codegen.merge.unified_body import Body
from burn_import.tracing.trace import Apply, Block, Statement

#: The operands of a ``flatten`` after the first: the axes.
Axes = tuple[Any, ...]


def differing_axes(bodies: Sequence[Body]) -> frozenset[Axes]:
    """Return the axes that some, but not all of the bodies flatten."""
    axes: list[frozenset[Axes]] = [
        frozenset(_flattened(body.trace.body.statements)) for body in bodies
    ]
    return frozenset().union(*axes) - axes[0].intersection(*axes[1:])


def _flattened(statements: Sequence[Statement]) -> Iterator[Axes]:
    for statement in statements:
        if isinstance(statement, Apply) and statement.primitive is ops.flatten:
            yield statement.args[1:]


def with_reshapes(body: Body, axes: Collection[Axes]) -> Body:
    """Return ``body`` with reshapes to the same shape instead of such flattenings."""
    block = body.trace.body
    statements = as_reshapes(block.statements, axes)
    return replace(
        body, trace=replace(body.trace, body=Block(statements, block.results))
    )


def as_reshapes(
    statements: Sequence[Statement], axes: Collection[Axes]
) -> list[Statement]:
    """Return the statements with reshapes for the flattenings of ``axes``."""
    return [_as_reshape(statement, axes) for statement in statements]


def _as_reshape(statement: Statement, axes: Collection[Axes]) -> Statement:
    is_flatten = isinstance(statement, Apply) and statement.primitive is ops.flatten
    if not isinstance(statement, Apply) or not is_flatten:
        return statement
    result = statement.targets[0].type
    if statement.args[1:] not in axes or result is None or result.shape is None:
        return statement
    args = (statement.args[0], tuple(result.shape))
    return replace(statement, primitive=ops.reshape, args=args, static={})
