"""Recovers rotary embedding from the two sums that rotate pairs of features."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from burn.dtypes import is_float
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops.attention import RotaryEmbedding
from burn_ir.ops.shape import Squeeze, Transpose, Unsqueeze
from burn_ir.ops.support import known_ints

#: An end index that is beyond every extent.
BEYOND = 2**31 - 1


def rotations(graph: Graph) -> Graph:
    """Return ``graph`` with ``RotaryEmbedding`` for rotations written as two sums.

    The sums are ``a * cos - b * sin`` and ``b * cos + a * sin``, where ``a`` and ``b``
    are the halves of the features or the even and odd ones. The axis of the heads is
    before or after the sequence; the tables have extent 1 there.
    """
    flow = Dataflow(graph)
    return with_nodes(
        graph, [new for node in graph.nodes for new in _replacements(flow, node)]
    )


@dataclass(frozen=True)
class _Rotation:
    """A rotation: its operand, its tables, and the nodes in between."""

    x: str
    cos: str
    sin: str
    inner: list[Node]


def _replacements(flow: Dataflow, last: Node) -> list[Node]:
    """Return ``last``, or the nodes that replace it."""
    if last.op.domain or last.op.onnx not in ("Concat", "Reshape"):
        return [last]
    paired = last.op.onnx == "Reshape"
    joined = flow.made_by(last.inputs[0], "Concat") if paired else last
    if joined is None or not _is_last(flow, joined) or len(joined.inputs) != 2:
        return [last]
    inner, parts = [joined] if paired else [], list(joined.inputs)
    for position, name in enumerate(parts if paired else ()):
        column = flow.made_by(name, "Unsqueeze")
        if column is None or flow.extents(name)[-1:] != (1,):
            return [last]
        inner.append(column)
        parts[position] = column.inputs[0]
    rotation = _rotation(flow, parts, inner, paired)
    if rotation is None or flow.extents(rotation.x) != flow.extents(last.output):
        return [last]
    if not flow.are_inside(rotation.inner, last):
        return [last]
    return _embed(flow, rotation, last, paired)


def _is_last(flow: Dataflow, joined: Node) -> bool:
    rank = len(flow.extents(joined.output))
    return joined.op.attrs()["axis"] in (-1, rank - 1)


def _rotation(
    flow: Dataflow, parts: list[str | None], inner: list[Node], paired: bool
) -> _Rotation | None:
    """Return the rotation with the two sums ``parts``; None if they are none."""
    less, more = flow.made_by(parts[0], "Sub"), flow.made_by(parts[1], "Add")
    if less is None or more is None:
        return None
    names = (*less.inputs, *more.inputs)
    factors = [flow.made_by(name, "Mul") for name in names]
    products = [node for node in factors if node is not None]
    if len(products) < 4:
        return None
    others = {frozenset(node.inputs) for node in products[2:]}
    inner = [*inner, less, more, *products]
    for a, cos in _orders(products[0]):
        for b, sin in _orders(products[1]):
            if others != {frozenset((b, cos)), frozenset((a, sin))}:
                continue
            x = _source(flow, a, b, paired)
            if x is not None:
                return _Rotation(x, cos, sin, inner)
    return None


def _orders(node: Node) -> Iterator[tuple[str, str]]:
    a, b = (str(name) for name in node.inputs)
    yield a, b
    yield b, a


def _source(flow: Dataflow, a: str, b: str, paired: bool) -> str | None:
    """Return the value of which ``a`` and ``b`` are the halves of the features.

    If ``paired``, they are the even and the odd features.
    """
    if paired:
        first, second = _every_other(flow, a), _every_other(flow, b)
        if first is None or second is None or first[0] != second[0]:
            return None
        return first[0] if (first[1], second[1]) == (0, 1) else None
    one, two = flow.piece(a), flow.piece(b)
    if one is None or two is None or one[0] is None or one[0] != two[0]:
        return None
    size = flow.extents(one[0])[-1]
    halves = one[1] == 0 and one[2] == two[1] and two[2] == size == 2 * one[2]
    return one[0] if halves else None


def _every_other(flow: Dataflow, name: str) -> tuple[str, int] | None:
    """Return the value of which ``name`` has every second feature, and the start."""
    node = flow.made_by(name, "Slice", "Gather")
    source = None if node is None else node.inputs[0]
    if node is None or source is None:
        return None
    shape = flow.extents(source)
    operands = [known_ints(flow.graph.type(n)) for n in node.inputs[1:]]
    if node.op.onnx == "Slice":
        if len(operands) != 4 or not shape or operands[0] not in ((0,), (1,)):
            return None
        starts, ends, axes, steps = operands
        whole = ends is not None and ends[0] >= BEYOND or ends == shape[-1:]
        last = axes in ((-1,), (len(shape) - 1,)) and steps == (2,)
        return (source, starts[0]) if starts and whole and last else None
    pairs, axis = flow.made_by(source, "Reshape"), node.op.attrs()["axis"]
    if (
        pairs is None
        or operands not in ([(0,)], [(1,)])
        or flow.extents(node.inputs[1])
    ):
        return None
    whole_shape, size = flow.extents(pairs.inputs[0]), shape[-1:]
    if axis not in (-1, len(shape) - 1) or size != (2,) or pairs.inputs[0] is None:
        return None
    fits = shape[:-2] == whole_shape[:-1] and shape[-2] * 2 == whole_shape[-1]
    return (pairs.inputs[0], operands[0][0]) if fits and operands[0] else None


class _Table(NamedTuple):
    """A rank-3 table: a value, or ``op`` applied to it."""

    name: str
    extents: tuple[Dim, ...]
    op: Op | None = None
    axis: int = 0


def _table(flow: Dataflow, name: str, axis: int) -> _Table | None:
    """Return the table without the ``axis`` of its heads, which has extent 1."""
    shape = flow.extents(name)
    if len(shape) == 2 and axis == 1:
        return _Table(name, (1, *shape), Unsqueeze())
    if len(shape) == 3 and axis == 1 and shape[0] == 1:
        return _Table(name, shape)
    if len(shape) != 4 or shape[axis] != 1:
        return None
    extents = (*shape[:axis], *shape[axis + 1 :])
    node = flow.made_by(name, "Unsqueeze")
    axes = None if node is None else known_ints(flow.graph.type(node.inputs[1]))
    if node is not None and axes in ((axis,), (axis - 4,)):
        return _Table(str(node.inputs[0]), extents)
    return _Table(name, extents, Squeeze(), axis)


def _embed(flow: Dataflow, rotation: _Rotation, last: Node, paired: bool) -> list[Node]:
    """Return the nodes that replace a rotation; ``last`` if its tables do not fit."""
    t, shape = flow.graph.type(rotation.x), flow.extents(rotation.x)
    if t is None or not is_float(t.dtype) or len(shape) != 4:
        return [last]
    for axis in (1, 2):
        candidates = [_table(flow, n, axis) for n in (rotation.cos, rotation.sin)]
        tables = [table for table in candidates if table is not None]
        angles = (shape[3 - axis], shape[3] // 2)
        shapes = ((1, *angles), (shape[0], *angles))
        if len(tables) == 2 and all(table.extents in shapes for table in tables):
            return _nodes(flow, rotation, last, tables, _Axes(axis, paired))
    return [last]


class _Axes(NamedTuple):
    """The axis of the heads, and whether neighboring features are pairs."""

    heads: int
    paired: bool


def _nodes(
    flow: Dataflow, rotation: _Rotation, last: Node, tables: list[_Table], axes: _Axes
) -> list[Node]:
    scope, classes = common_scope(*rotation.inner, last)
    last = replace(last, scope=scope, classes=classes)
    nodes, names = [], []
    for table in tables:
        name = table.name
        if table.op is not None:
            name = flow.fresh(f"{name}.table")
            inputs = (table.name, integers(flow.graph, [table.axis]))
            nodes.append(replace(last, op=table.op, inputs=inputs, outputs=(name,)))
        names.append(name)
    op = RotaryEmbedding(interleaved=1 if axes.paired else 0)
    if axes.heads == 1:
        return [*nodes, replace(last, op=op, inputs=(rotation.x, *names))]
    before, after = (flow.fresh(f"{last.output}.{n}") for n in ("heads", "turned"))
    turn = Transpose(perm=(0, 2, 1, 3))
    return [
        *nodes,
        replace(last, op=turn, inputs=(rotation.x,), outputs=(before,)),
        replace(last, op=op, inputs=(before, *names), outputs=(after,)),
        replace(last, op=turn, inputs=(after,)),
    ]
