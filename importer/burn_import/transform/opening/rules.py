"""Rewriting of constants that the batch is part of, by operator."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from burn_import.transform.opening.graph import BatchGraph
from burn_ir.dim import Dim, exact_div
from burn_ir.errors import InvalidOperand
from burn_ir.graph import Node
from burn_ir.op import Op
from burn_ir.ops import recurrent, rnn
from burn_ir.ops.grid import GridSample
from burn_ir.ops.resize import Resize
from burn_ir.ops.shape import Concat, Reshape
from burn_ir.ops.support import known_dims

#: Axes with the batch's extent, by the position of an operand.
Axes = Mapping[int, Collection[int]]


def adapted(batch: BatchGraph, node: Node) -> Node:
    """Return ``node`` with its constants rewritten for the batch.

    Raises:
        InvalidOperand: a constant has no part for each example.
    """
    op = node.op
    if isinstance(op, Reshape):
        return _reshaped(batch, node, op)
    if isinstance(op, Resize):
        return _resized(batch, node, op)
    if isinstance(op, Concat):
        return _expanded(batch, node, _joined_axes(batch, node, op))
    aligned = ALIGNED.get(type(op))
    return node if aligned is None else _expanded(batch, node, aligned(op))


def _reshaped(batch: BatchGraph, node: Node, op: Reshape) -> Node:
    """Return a Reshape whose target has the batch where the file has a number."""
    data, shape = node.inputs
    known, axes = known_dims(batch.type(shape)), batch.axes(data)
    target = batch.graph.types[node.output].shape
    if known is None or target is None or len(axes) != 1:
        return node
    if any(map(batch.is_part, known)):
        return node  # computed from the extents of the data
    assert data is not None
    dims = batch.types[data].dims
    before = prod(map(batch.before, dims[: axes[0]]), start=batch.outer.get(data, 1))
    place = _place(batch, dims, axes[0], target, before)
    written = None if place is None else _written(batch, target, place, dims)
    if written is None:
        return node
    outer = exact_div(before, prod(target[:place], start=1))
    if outer is not None and outer != 1:
        batch.outer[node.output] = outer
    name = batch.literal(f"{node.output}_shape", written)
    return node.with_op(replace(op, allowzero=0), (data, name))


def _place(
    batch: BatchGraph,
    dims: Sequence[Dim],
    axis: int,
    target: Sequence[Dim],
    before: Dim,
) -> int | None:
    """Return the axis of a Reshape's target that the batch is a factor of.

    Row-major order is kept, so ``before`` elements precede it, as in the operand. Where
    it can join the axis before or after it, it joins the one before in matrices,
    ``[length * batch, features]``, and otherwise the one after, ``[length, batch *
    heads, features]``.
    """
    places = []
    for place in range(len(target)):
        outer = prod(target[:place], start=1)
        inner = exact_div(outer * target[place], before * batch.old)
        if exact_div(before, outer) is not None and inner is not None:
            places.append(place)
    own = (batch.old, batch.before(dims[axis]))
    clear = [p for p in places if prod(target[:p], start=1) == before]
    clear = [p for p in clear if target[p] in own]
    clear.sort(key=lambda p: (p != axis, target[p] != batch.old))
    if len(target) > 2:
        clear += [p for p in places if p == axis]
    return next(iter([*clear, *places]), None)


def _written(
    batch: BatchGraph, target: Sequence[Dim], place: int, dims: Sequence[Dim]
) -> list[int] | None:
    """Return the contents of a Reshape's target, or None if there are none.

    At most one is -1: the batch, or another extent that is not a number, where 0 takes
    over the batch from the same axis of the operand.
    """
    written: list[int | None] = []
    for axis, dim in enumerate(target):
        kept = axis < len(dims) and dims[axis] == (
            batch.symbol if axis == place else dim
        )
        if axis == place:
            written.append(0 if kept and dim == batch.old else None)
        elif isinstance(dim, int) and dim > 0:
            written.append(dim)
        else:
            written.append(0 if kept else None)
    if written.count(None) == 0:
        written[place] = None
    return (
        None if written.count(None) > 1 else [-1 if n is None else n for n in written]
    )


def _resized(batch: BatchGraph, node: Node, op: Resize) -> Node:
    """Return a Resize whose sizes do not mention the axis of the batch."""
    data, sizes = node.inputs[0], (*node.inputs, None, None, None)[3]
    known, own = known_dims(batch.type(sizes)), batch.axes(data)
    if known is None or data is None or not own or any(map(batch.is_part, known)):
        return node
    value_type = batch.types[data]
    axes = range(value_type.rank) if op.axes is None else value_type.axes(op.axes)
    size_of = dict(zip(axes, map(int, known), strict=True))
    for axis in own:
        size = size_of.pop(axis, None)
        if size not in (None, batch.before(value_type.dims[axis])):
            raise InvalidOperand(
                f"expected a size that keeps {batch.symbol}, got {size}"
            )
    name = batch.literal(f"{node.output}_sizes", list(size_of.values()))
    return node.with_op(replace(op, axes=tuple(size_of)), (*node.inputs[:3], name))


def _joined_axes(batch: BatchGraph, node: Node, op: Concat) -> Axes:
    """Return the axes along which the operands of a Concat have equal extents."""
    first = batch.type(node.inputs[0])
    if first is None or first.shape is None:
        return {}
    (joined,) = first.axes(op.axis)
    axes = {axis for name in node.inputs for axis in batch.axes(name)} - {joined}
    return {position: axes for position in range(len(node.inputs))}


def _expanded(batch: BatchGraph, node: Node, aligned: Axes) -> Node:
    """Return ``node`` with operands of the old extent expanded along these axes."""
    inputs = list(node.inputs)
    for position, axes in aligned.items():
        name = inputs[position] if position < len(inputs) else None
        value_type = batch.type(name)
        if name is None or value_type is None or value_type.shape is None:
            continue
        fixed = [axis for axis in axes if value_type.shape[axis] == batch.old]
        if fixed and not batch.axes(name):
            one = batch.first_example(name, fixed[0])
            inputs[position] = batch.expand(node, one, value_type.rank, fixed[0])
    return node.with_op(node.op, tuple(inputs))


def _onnx_states(op: Any) -> Axes:
    return {4: (0,), **{state: (0 if op.layout else 1,) for state in (5, 6)}}


#: The axes of operands that have the batch's extent and do not broadcast.
ALIGNED: Mapping[type[Op], Callable[[Any], Axes]] = {
    rnn.LSTM: _onnx_states,
    rnn.GRU: _onnx_states,
    rnn.RNN: _onnx_states,
    recurrent.LSTM: lambda op: {1: (1,), 2: (1,)},
    recurrent.GRU: lambda op: {1: (1,)},
    recurrent.RNN: lambda op: {1: (1,)},
    GridSample: lambda op: {0: (0,), 1: (0,)},
}
