"""Flattened axes that differ between bodies, as reshapes that may be equal.

A block that only some bodies run may change the rank: then the others flatten other
axes to the same shape.
"""

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

    With ``is_inferred`` the first extent of such a shape, and of reshapes that infer a
    later one, is -1 if it is symbolic and the others are numbers: one of several bodies
    has a single window, the others join windows and batch.
    """

    axes: frozenset[Axes] = frozenset()
    is_inferred: bool = False


def differing_axes(bodies: Sequence[Body]) -> Iterator[Flattened]:
    """Yield the axes that some, but not all of the bodies flatten."""
    axes: list[frozenset[Axes]] = [
        frozenset(_flattened_axes(body.trace.body.statements)) for body in bodies
    ]
    differing = frozenset().union(*axes) - axes[0].intersection(*axes[1:])
    if differing:
        yield Flattened(differing)
        yield Flattened(differing, is_inferred=True)


def _flattened_axes(statements: Sequence[Statement]) -> Iterator[Axes]:
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
    is_flatten = statement.primitive is ops.flatten and args[1:] in flattened.axes
    is_reshape = statement.primitive is ops.reshape and _infers_later(args[1])
    first, *others = result.shape
    is_open = not isinstance(first, int) and all(isinstance(n, int) for n in others)
    if flattened.is_inferred and is_open and (is_flatten or is_reshape):
        shape = (-1, *others)
    elif is_flatten:
        shape = tuple(result.shape)
    else:
        return statement
    return replace(statement, primitive=ops.reshape, args=(args[0], shape), static={})


def _infers_later(shape: Any) -> bool:
    """Return whether a reshape infers another extent than the first."""
    return isinstance(shape, tuple | list) and -1 in shape[1:]


def aligned_reshapes(calls: Sequence[Apply]) -> list[Apply]:
    """Return reshapes to known extents that infer the one that the first one infers.

    Which of several known extents a reshape infers can differ between layers.
    """
    if any(call.primitive is not ops.reshape for call in calls):
        return list(calls)
    axes = [_inferred(call.args[1]) for call in calls]
    if len(set(axes)) == 1:
        return list(calls)
    axis = axes[0]
    return [calls[0], *(_inferring(call, axis) for call in calls[1:])]


def _inferred(shape: Any) -> int | None:
    """Return the axis that a reshape infers, if any."""
    has_one = isinstance(shape, tuple | list) and -1 in shape
    return list(shape).index(-1) if has_one else None


def _inferring(call: Apply, axis: int | None) -> Apply:
    """Return a reshape that infers the extent of ``axis``, if others are numbers."""
    target = call.targets[0].type
    if not isinstance(call.args[1], tuple | list) or target is None or not target.shape:
        return call
    shape = [-1 if at == axis else extent for at, extent in enumerate(target.shape)]
    if not all(isinstance(extent, int) for extent in shape):
        return call
    return replace(call, args=(call.args[0], tuple(shape), *call.args[2:]))
