"""Calls of one module with inputs of several sizes, as of a head over feature maps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from burn_import.provenance.axis_names import AXES
from burn_import.rewriting.arrays import integers
from burn_ir.dim import Dim, Poly, bind, symbol, symbols
from burn_ir.errors import InvalidOperand, ModelError, Undecided
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.names import free_name
from burn_ir.types import Type


def with_common_sizes(
    graph: Graph, calls: Sequence[Sequence[Node]]
) -> list[Graph] | None:
    """Return ``graph`` for each call, where extents that differ are symbols.

    The calls have the same operators, position by position; code that is the same in
    these graphs is the same for all sizes. None if the types of some values need them.
    """
    read = [_read(graph, call) for call in calls]
    if len(set(map(len, read))) > 1:
        return None
    sizes = _Sizes(graph)
    operands = [sizes.common(column) for column in _columns(graph, read)]
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands) or not sizes.values:
        return None
    results = _results(graph, calls[0], dict(zip(read[0], known, strict=True)))
    graphs = []
    for number, (call, names) in enumerate(zip(calls, read, strict=True)):
        written = dict(zip(_written(call), results, strict=False))
        values = {name: extents[number] for name, extents in sizes.values.items()}
        if not all(_fits(graph.types[n], t, values) for n, t in written.items()):
            return None
        types = {**graph.types, **dict(zip(names, known, strict=True)), **written}
        graphs.append(replace(graph, types=types))
    return graphs if results else None


def _read(graph: Graph, call: Sequence[Node]) -> list[str]:
    """Return the values that a call reads from outside, in the order of its nodes."""
    written = set(_written(call))
    names = (name for node in call for name in node.inputs if name is not None)
    return list(
        dict.fromkeys(n for n in names if n not in written and n in graph.types)
    )


def _written(call: Sequence[Node]) -> list[str]:
    return [name for node in call for name in node.outputs if name is not None]


def _columns(graph: Graph, read: Sequence[Sequence[str]]) -> list[list[Type]]:
    """Return the types of each operand in all calls."""
    columns = zip(*read, strict=True)
    return [[graph.types[name] for name in column] for column in columns]


def _results(
    graph: Graph, call: Sequence[Node], operands: Mapping[str, Type]
) -> list[Type]:
    """Return the types of the results of a call's nodes, [] if they are undecided."""
    inputs = tuple(operands)
    part = replace(graph, inputs=inputs, outputs=(), nodes=tuple(call), types=operands)
    try:
        inferred = infer(replace(part, defaults={}, states=()))
    except (InvalidOperand, ModelError, Undecided):
        return []
    return [inferred.types[name] for name in _written(call)]


class _Sizes:
    """Symbols for extents, with the extents that each has in the calls."""

    def __init__(self, graph: Graph) -> None:
        shapes = (value.shape or () for value in graph.types.values())
        self.names = {
            name for shape in shapes for dim in shape for name in symbols(dim)
        }
        self.values: dict[str, tuple[Dim, ...]] = {}
        #: The symbol of an axis with these extents.
        self.symbols: dict[tuple[int, tuple[Dim, ...]], Poly] = {}

    def common(self, types: Sequence[Type]) -> Type | None:
        """Return the type of one operand of all calls; None if there is none.

        Axes of several operands have one symbol if they have the same extents.
        """
        first = types[0]
        shapes = [value.shape for value in types if value.shape is not None]
        ranks = {len(shape) for shape in shapes}
        if len(shapes) < len(types) or len(ranks) > 1 or first.known is not None:
            return None
        columns = zip(*shapes, strict=True)
        dims = [
            self._dim(axis, len(shapes[0]), dims) for axis, dims in enumerate(columns)
        ]
        return first.with_shape(dims)

    def _dim(self, axis: int, rank: int, dims: tuple[Dim, ...]) -> Dim:
        if len(set(dims)) == 1:
            return dims[0]
        key = (axis - rank, dims)
        if key not in self.symbols:
            names = AXES.get(rank, ())
            name = free_name(names[axis] if axis < len(names) else "size", self.names)
            self.names.add(name)
            self.values[name] = dims
            self.symbols[key] = symbol(name)
        return self.symbols[key]


def _fits(actual: Type, common: Type, values: Mapping[str, Dim]) -> bool:
    """Return whether a type is the common one, where symbols have these values."""
    if actual.shape is None or common.shape is None:
        return actual.shape == common.shape
    names = {name for dim in common.shape for name in symbols(dim)}
    sizes = {name: values.get(name, symbol(name)) for name in names}
    return actual.shape == tuple(bind(dim, sizes) for dim in common.shape)


def with_targets(graph: Graph, targets: Mapping[int, list[int]]) -> Graph:
    """Return ``graph`` with other stored targets of reshapes, by node."""
    nodes = []
    for node in graph.nodes:
        if id(node) in targets:
            inputs = (node.inputs[0], integers(graph, targets[id(node)]))
            node = replace(node, inputs=inputs)
        nodes.append(node)
    return graph.with_nodes(nodes)
