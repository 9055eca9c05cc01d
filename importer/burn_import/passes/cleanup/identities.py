"""Removes operators that return their operand, where types prove it."""

from collections.abc import Callable, Iterable
from math import prod

from burn_import.provenance.trainable import is_learned, is_trained
from burn_import.provenance.weight_owners import is_authored, is_key, original
from burn_import.rewriting.arrays import core
from burn_import.rewriting.graphs import rename, resolve, value_names
from burn_ir.graph import Graph, Node
from burn_ir.ops.support import known_dims, known_ints
from burn_ir.types import Array, Type

#: An end index that is beyond every extent.
BEYOND = 2**31 - 1
#: More elements than an array in memory can have.
MEMORY = 2**46


def identities(graph: Graph) -> Graph:
    """Return ``graph`` without nodes whose result is one of their operands.

    Values stay bit-identical except for the sign of zero: ``-0.0 + 0.0`` is ``0.0``,
    and without the addition ``-0.0``. Graph outputs keep their names, so a node that
    copies an input, a constant or another output to an output stays.
    """
    aliases: dict[str, str] = {}
    inner = value_names(graph) - set(graph.inputs) - set(graph.outputs)
    outputs, nodes = set(graph.outputs), []
    for node in graph.nodes:
        source = _unchanged_operand(node, graph)
        target = node.outputs[0]
        if source is None or target is None:
            nodes.append(node)
        elif target not in outputs:
            aliases[target] = source
        elif (made_here := resolve(aliases, source)) in inner:
            aliases[made_here] = target
        else:
            nodes.append(node)
    if not aliases:
        return graph
    return rename(graph.with_nodes(nodes), aliases)


def _unchanged_operand(node: Node, graph: Graph) -> str | None:
    """Return the operand equal to the first, only used result; None if none is."""
    rule = RULES.get(node.op.onnx)
    if rule is None or node.op.domain or any(node.outputs[1:]):
        return None
    return rule(node, graph)


def _first_if(
    proof: Callable[[Type, Type], bool],
) -> Callable[[Node, Graph], str | None]:
    """Return a rule: the first operand, if ``proof`` of it and the result holds."""

    def rule(node: Node, graph: Graph) -> str | None:
        x, result = graph.type(node.inputs[0]), graph.type(node.output)
        assert x is not None and result is not None
        return node.inputs[0] if proof(x, result) else None

    return rule


def _same_shape(x: Type, result: Type) -> bool:
    return x.shape is not None and x.shape == result.shape


def _same_rank(x: Type, result: Type) -> bool:
    if x.shape is None or result.shape is None:
        return False
    return len(x.shape) == len(result.shape)


def _same_dtype(x: Type, result: Type) -> bool:
    return x.dtype == result.dtype


def _always(x: Type, result: Type) -> bool:
    return True


def _only(node: Node, graph: Graph) -> str | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


def _concat(node: Node, graph: Graph) -> str | None:
    """Return the only operand that is not known to be empty along the axis."""
    axis = node.op.attrs()["axis"]
    types = [(name, graph.type(name)) for name in node.inputs]
    names = [
        name
        for name, t in types
        if t is None or t.shape is None or t.shape[axis] != 0 or len(types) == 1
    ]
    return names[0] if len(names) == 1 else None


def _constant(node: Node, position: int, graph: Graph) -> Array | None:
    """Return the array of a constant operand; None for other operands."""
    if position >= len(node.inputs):
        return None
    name = node.inputs[position]
    if name is None or name in graph.types:
        return None
    return graph.constants[name]


def _dropout(node: Node, graph: Graph) -> str | None:
    """Return the operand unless dropout is in training mode."""
    has_training_flag = len(node.inputs) > 2 and node.inputs[2] is not None
    if has_training_flag:
        training = _constant(node, 2, graph)
        if training is None or training.any():
            return None
    return node.inputs[0]


def _transpose(node: Node, graph: Graph) -> str | None:
    x, perm = graph.type(node.inputs[0]), node.op.attrs()["perm"]
    if x is None or x.shape is None:
        is_sorted = perm is not None and list(perm) == sorted(perm)
        return node.inputs[0] if is_sorted else None
    order = range(len(x.shape))[::-1] if perm is None else perm
    long_axes = [axis for axis in order if x.shape[axis] != 1]
    keeps = long_axes == sorted(long_axes) and all(
        x.shape[axis] == dim for axis, dim in zip(order, x.shape, strict=True)
    )
    return node.inputs[0] if keeps else None


def _expand(node: Node, graph: Graph) -> str | None:
    x, dims = graph.type(node.inputs[0]), known_dims(graph.type(node.inputs[1]))
    if x is None or x.shape is None or dims is None or len(dims) > len(x.shape):
        return None
    own = x.shape[len(x.shape) - len(dims) :]
    keeps = all(d in (1, n) for d, n in zip(dims, own, strict=True))
    return node.inputs[0] if keeps else None


def _tile(node: Node, graph: Graph) -> str | None:
    return _first_if_all(node, graph, 1)


def _pad(node: Node, graph: Graph) -> str | None:
    return _first_if_all(node, graph, 0)


def _first_if_all(node: Node, graph: Graph, value: int) -> str | None:
    counts = known_dims(graph.type(node.inputs[1]))
    keeps = counts is not None and all(n == value for n in counts)
    return node.inputs[0] if keeps else None


def _slice(node: Node, graph: Graph) -> str | None:
    operands = [graph.type(name) for name in node.inputs] + [None] * 2
    x, starts, ends = operands[0], known_ints(operands[1]), known_dims(operands[2])
    if x is None or starts is None or ends is None or any(starts):
        return None
    axes = range(len(ends)) if operands[3] is None else known_ints(operands[3])
    steps = (1,) if operands[4] is None else known_ints(operands[4])
    if axes is None or steps is None or any(step != 1 for step in steps):
        return None
    return node.inputs[0] if _are_ends_beyond(x, ends, axes) else None


def _are_ends_beyond(x: Type, ends: Iterable[object], axes: Iterable[int]) -> bool:
    """Return whether every end is at the end of its axis or beyond."""
    for end, axis in zip(ends, axes, strict=True):
        if isinstance(end, int) and end >= _least_beyond(x, axis):
            continue
        if x.shape is None:
            return False
        extent = x.shape[axis]
        longer = isinstance(end, int) and isinstance(extent, int) and end > extent
        if end != extent and not longer:
            return False
    return True


def _least_beyond(x: Type, axis: int) -> int:
    """Return the least end that is beyond an axis of any array in memory.

    Where all other extents are fixed, they limit this one.
    """
    if x.shape is None:
        return BEYOND
    others = [n for at, n in enumerate(x.shape) if at != axis % len(x.shape)]
    fixed = [n for n in others if isinstance(n, int)]
    if len(fixed) < len(others) or not prod(fixed):
        return BEYOND
    return min(BEYOND, MEMORY // prod(fixed))


def _resize(node: Node, graph: Graph) -> str | None:
    """Return the operand if the scale is 1 and the mode does not shift coordinates."""
    attrs = node.op.attrs()
    moved = attrs["coordinate_transformation_mode"] in (
        "tf_crop_and_resize",
        "tf_half_pixel_for_nn",
    )
    if moved or attrs["mode"] == "cubic":
        return None
    scales = _constant(node, 2, graph)
    if scales is not None and scales.size:
        return node.inputs[0] if (scales == 1).all() else None
    x, result = graph.type(node.inputs[0]), graph.type(node.output)
    if x is None or result is None:
        return None
    return node.inputs[0] if _same_shape(x, result) else None


def _neutral(
    value: float, positions: tuple[int, ...]
) -> Callable[[Node, Graph], str | None]:
    """Return a rule for the neutral element ``value`` at one of ``positions``.

    Weights are excluded: before training they may have neutral values.
    """

    def rule(node: Node, graph: Graph) -> str | None:
        for position in positions:
            stored = _constant(node, position, graph)
            if stored is not None and is_weight(node.inputs[position], graph):
                continue
            other = node.inputs[1 - position]
            x = graph.type(other)
            if stored is None or x is None or x.dtype != graph.types[node.output].dtype:
                continue
            if _never_widens(stored, x) and (core(stored) == value).all():
                return other
        return None

    return rule


def is_weight(name: str | None, graph: Graph) -> bool:
    """Return whether a constant is, or was folded from, a parameter with a key.

    Unlisted buffers (``final_logits_bias``) are recognized by their names.
    """
    if name is None or name in graph.constants.literals:
        return False
    if is_authored(graph, name) or is_learned(graph, name):
        return is_learned(graph, name)
    has_key = is_key(graph.producer, original(graph, name))
    return has_key and graph.constants[name].size > 1 and is_trained(graph, name)


def _never_widens(stored: Array, x: Type) -> bool:
    """Return whether ``x`` keeps its shape when broadcast with ``stored``."""
    if x.shape is None:
        return stored.ndim == 0
    if stored.ndim > len(x.shape):
        return False
    own = x.shape[len(x.shape) - stored.ndim :]
    return all(n in (1, d) for n, d in zip(stored.shape, own, strict=True))


RULES: dict[str, Callable[[Node, Graph], str | None]] = {
    "Identity": _first_if(_always),
    "Dropout": _dropout,
    "Cast": _first_if(_same_dtype),
    "CastLike": _first_if(_same_dtype),
    "Reshape": _first_if(_same_shape),
    "Flatten": _first_if(_same_shape),
    "Squeeze": _first_if(_same_rank),
    "Unsqueeze": _first_if(_same_rank),
    "Expand": _expand,
    "Tile": _tile,
    "Transpose": _transpose,
    "Slice": _slice,
    "Split": _first_if(_same_shape),
    "Pad": _pad,
    "Resize": _resize,
    "Concat": _concat,
    "Sum": _only,
    "Max": _only,
    "Min": _only,
    "Mean": _only,
    "And": _neutral(1, (1, 0)),
    "Or": _neutral(0, (1, 0)),
    "Add": _neutral(0, (1, 0)),
    "Sub": _neutral(0, (1,)),
    "Mul": _neutral(1, (1, 0)),
    "Div": _neutral(1, (1,)),
    "Pow": _neutral(1, (1,)),
}
