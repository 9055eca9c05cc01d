"""The memory layout of results, chosen from their consumers or their operands."""

from collections import Counter

import numpy as np

from burn.ops.casting import cast
from burn.ops.conv import conv
from burn.ops.fused import conv_then, expanded_depthwise
from burn.ops.qdq_layers import conv_of_integers, to_integers
from burn.ops.shape import permute, transpose
from burn.ops.support import Array, axes_of
from burn.plan.passes.graph import swapped_axes
from burn.plan.plan_ir import Segment, Slot, Step, slots_in

_CASTS = frozenset({cast, to_integers})
_CONVOLUTIONS = frozenset({conv, conv_then, conv_of_integers, expanded_depthwise})


def wanted_orders(segment: Segment) -> dict[int, tuple[int, ...]]:
    """Return the preferred axes from the slowest to the fastest, by place.

    A result that is only read permuted is laid out so that the permutation is row-major
    and needs no copy. Operands that are cast for a convolution are channels-last.
    """
    uses = Counter(slots_in(segment.ends))
    for step in segment.steps:
        if isinstance(step, Step):
            uses.update(step.operand_places)
    orders: dict[int, tuple[int, ...]] = {}
    casts: dict[int, int] = {}  # the rank of each result of a cast, by slot
    for step in segment.steps:
        if not isinstance(step, Step):
            continue
        if step.primitive in _CASTS:
            casts[step.outputs[0]] = len(step.shapes[0])
        first = next(iter(slots_in(step.args[:1])), None)
        if first is None or uses[first] != 1:
            continue
        order = _order(step) if type(step.args[0]) is Slot else None
        if step.primitive in _CONVOLUTIONS and casts.get(first, 0) > 2:
            order = (0, *range(2, casts[first]), 1)
        if order is not None:
            orders[first] = order
    return orders


def _order(step: Step) -> tuple[int, ...] | None:
    """Return the axis order of the operand for which the result is row-major."""
    rank = len(step.shapes[0])
    axes = list(range(rank))
    if step.primitive is transpose:
        first, second = swapped_axes(step)
        axes[first], axes[second] = axes[second], axes[first]
        return tuple(axes)
    if step.primitive is permute:
        given = (*step.args[1:], step.static.get("axes"))[0]
        return tuple(axes[::-1]) if given is None else axes_of(given, rank)
    return None


def reshaped_copy(result: Array, source: Array) -> Array:
    """Return a copy of a reshaped ``source``, of which ``source.shape`` is a view.

    It is channels-last if the source is and only its channels are reshaped, as where
    they are shuffled.
    """
    size = result.shape[2:]
    rank = source.ndim - len(size)
    if len(size) and rank > 1 and source.shape[rank:] == size:
        inside = [abs(step) for step in source.strides[1:rank]]
        if max(inside) < min(map(abs, source.strides[rank:])):
            copy = np.moveaxis(np.ascontiguousarray(np.moveaxis(result, 1, -1)), -1, 1)
            if np.may_share_memory(copy.reshape(source.shape), copy):
                return copy
    return np.ascontiguousarray(result)
