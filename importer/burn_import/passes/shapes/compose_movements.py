"""Composes two consecutive transposes, reshapes, or insertions of axes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.op import operators
from burn_ir.ops.support import known_dims, known_ints
from burn_ir.types import Type

#: Operators that keep the order of the elements.
RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
#: Operators that this pass composes.
MOVES = RESHAPES | {"Transpose"}


def compose_movements(graph: Graph) -> Graph:
    """Return ``graph`` with one node for two consecutive data movements of a kind.

    The second node reads the operand of the first; an ``Identity`` replaces pairs that
    cancel. Pairs that do not cancel are composed only if the second is the only reader.
    """
    if graph.operators.isdisjoint(MOVES):
        return graph
    producers = dict(graph.producers)
    nodes = []
    for node in graph.nodes:
        joined = _compose(node, producers, graph)
        if joined is not node:
            producers[joined.output] = joined
        nodes.append(joined)
    return with_nodes(graph, nodes)


def _compose(node: Node, producers: Mapping[str, Node], graph: Graph) -> Node:
    name = node.inputs[0] if node.inputs else None
    first = None if name is None else producers.get(name)
    if first is None or name is None or node.op.domain or first.op.domain:
        return node
    if not first.inputs:  # an operator without operands (an empty sequence)
        return node
    rule = RULES.get((first.op.onnx, node.op.onnx))
    if rule is not None and rule(first, node, graph):
        identity = operators()[("", "Identity")]()
        return replace(node, op=identity, inputs=first.inputs[:1])
    if graph.uses[name] > 1:
        return node
    if first.op.onnx == node.op.onnx == "Transpose":
        return _one_transpose(first, node)
    if first.op.onnx == node.op.onnx == "Unsqueeze":
        return _one_unsqueeze(first, node, graph)
    if (first.op.onnx, node.op.onnx) == ("Reshape", "Squeeze"):
        return _squeezed_reshape(first, node, graph)
    if (first.op.onnx, node.op.onnx) == ("Unsqueeze", "Transpose"):
        return _transpose_without_new_axes(first, node, graph)
    x = graph.type(first.inputs[0])
    shape = () if x is None or x.shape is None else x.shape
    is_kept = first.op.onnx not in RESHAPES or is_selection(first, graph)
    if not is_kept and needs_no_shape(shape, node, graph):
        return replace(node, inputs=(first.inputs[0], *node.inputs[1:]))
    return node


def is_selection(squeeze: Node, graph: Graph) -> bool:
    """Return whether a node removes the axis of a slice of one entry: ``x[0]``."""
    if squeeze.op.onnx != "Squeeze" or len(squeeze.inputs) < 2:
        return False
    whole = graph.producers.get(squeeze.inputs[0] or "")
    t = graph.type(squeeze.inputs[0])
    axes = _axes(squeeze, t, graph)
    if whole is None or whole.op.onnx != "Slice" or axes is None or len(axes) > 1:
        return False
    before = graph.type(whole.inputs[0])
    along = known_ints(graph.type(whole.inputs[3])) if len(whole.inputs) > 3 else None
    return (
        along is not None
        and before is not None
        and before.shape is not None
        and (list(before.axes(along)) == axes)
    )


def _one_transpose(first: Node, node: Node) -> Node:
    inner, outer = first.op.attrs()["perm"], node.op.attrs()["perm"]
    if inner is None or outer is None:
        return node
    op = node.op.with_attrs(perm=_composed_permutation(outer, inner))
    return replace(node, op=op, inputs=first.inputs)


def _one_unsqueeze(first: Node, node: Node, graph: Graph) -> Node:
    inner = _axes(first, graph.type(first.output), graph)
    outer = _axes(node, graph.type(node.output), graph)
    if inner is None or outer is None:
        return node
    rank = len(graph.types[node.output].dims)
    others = [axis for axis in range(rank) if axis not in outer]
    axes = sorted([*outer, *(others[axis] for axis in inner)])
    return replace(node, inputs=(first.inputs[0], integers(graph, axes)))


def _squeezed_reshape(first: Node, node: Node, graph: Graph) -> Node:
    """Return a reshape without the axes of extent 1 that the second node removes."""
    target = known_ints(graph.type(first.inputs[1]))
    t = graph.type(first.output)
    axes = _axes(node, t, graph) if len(node.inputs) > 1 else None
    if target is None or axes is None or 0 in target:
        return node
    if any(target[axis] != 1 for axis in axes):
        return node
    kept = [n for axis, n in enumerate(target) if axis not in axes]
    return replace(
        first, inputs=(first.inputs[0], integers(graph, kept)), outputs=node.outputs
    )


def _transpose_without_new_axes(first: Node, node: Node, graph: Graph) -> Node:
    """Return a transpose without the axes of an ``Unsqueeze`` if only reshapes read it.

    They give the same result for any shape.
    """
    perm, readers = node.op.attrs()["perm"], graph.users.get(node.output, ())
    axes = _axes(first, graph.type(first.output), graph)
    targets = [
        known_ints(graph.type(r.inputs[1])) for r in readers if r.op.onnx == "Reshape"
    ]
    if perm is None or axes is None or node.output in graph.outputs or not readers:
        return node
    if len(targets) != len(readers) or any(t is None or 0 in t for t in targets):
        return node
    kept = sorted(axis for axis in perm if axis not in axes)
    order = tuple(kept.index(axis) for axis in perm if axis in kept)
    return replace(node, op=node.op.with_attrs(perm=order), inputs=first.inputs[:1])


def _composed_permutation(
    outer: tuple[int, ...], inner: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the permutation ``outer`` applied to the result of ``inner``."""
    return tuple(inner[axis] for axis in outer)


def _transposed_back(first: Node, node: Node, graph: Graph) -> bool:
    inner, outer = first.op.attrs()["perm"], node.op.attrs()["perm"]
    if inner is None or outer is None:
        return inner is outer
    return _composed_permutation(outer, inner) == tuple(range(len(outer)))


def _same_axes(first: Node, node: Node, graph: Graph) -> bool:
    """Return whether the nodes insert and remove, or remove and insert, equal axes."""
    if len(first.inputs) < 2 or len(node.inputs) < 2:
        return False
    # Both count axes at the larger rank.
    longer = first.output if first.op.onnx == "Unsqueeze" else first.inputs[0]
    t = graph.type(longer)
    a, b = _axes(first, t, graph), _axes(node, t, graph)
    return a is not None and a == b


def _axes(node: Node, t: Type | None, graph: Graph) -> list[int] | None:
    numbers = known_ints(graph.type(node.inputs[1]))
    if numbers is None or t is None or t.shape is None:
        return None
    return sorted(t.axes(numbers))


def needs_no_shape(shape: tuple[Dim, ...], node: Node, graph: Graph) -> bool:
    """Return whether a reshape gives the same result for an operand of ``shape``.

    A 0 in the target copies the operand's extent, so an extent that is or may be 0 must
    equal the extent of ``shape`` on that axis.
    """
    if node.op.onnx != "Reshape":
        return False
    dims = known_dims(graph.type(node.inputs[1]))
    if dims is None:
        return False
    if node.op.attrs()["allowzero"]:
        return True
    operand = graph.type(node.inputs[0])
    copied = () if operand is None or operand.shape is None else operand.shape
    if len(dims) <= len(copied):  # group norms split channels of their own operand
        copied = ()
    extents = [
        copied[axis] if dim == 0 and axis < len(copied) else dim
        for axis, dim in enumerate(dims)
    ]
    return all(
        (isinstance(dim, int) and dim != 0)
        or (axis < len(shape) and shape[axis] == extents[axis] != 0)
        for axis, dim in enumerate(dims)
    )


RULES: dict[tuple[str, str], Callable[[Node, Node, Graph], bool]] = {
    ("Transpose", "Transpose"): _transposed_back,
    ("Unsqueeze", "Squeeze"): _same_axes,
    ("Squeeze", "Unsqueeze"): _same_axes,
}
