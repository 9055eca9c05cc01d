"""Reversal of constant folding on the author's tensors, for the keys of the record.

Folding gives passes the contents and layout of every constant. If a folded result
remains at the end, such as a parameter in another shape, it is no tensor of the
author's: a record would store a different value under the author's key. The folded
nodes are put back, so that the record holds the original tensor.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from burn.dtypes import is_float
from burn_import.provenance.exporter_folding import is_module
from burn_import.provenance.weight_owners import ancestors, is_authored, original
from burn_import.rewriting.arrays import integers, same_view
from burn_import.rewriting.graphs import apply_with_bodies, value_names, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.layers import layer_of
from burn_ir.names import free_name
from burn_ir.ops.shape import Reshape, Transpose
from burn_ir.types import Array


def with_derivations(graph: Graph) -> Graph:
    """Return ``graph`` with nodes for values derived from the author's tensors.

    The tensors themselves and the weights of layers stay constants.
    """
    result = apply_with_bodies(_with_derivations, graph)
    return graph if result is graph else infer_derived(result)


def infer_derived(graph: Graph) -> Graph:
    """Return ``graph`` with types recomputed, without contents of derived values.

    Values with known contents would be emitted as literals instead of computed.
    """
    return apply_with_bodies(_with_unknown, infer(graph))


def _with_unknown(graph: Graph) -> Graph:
    names = graph.constants.derived & graph.types.keys()
    types = {name: graph.types[name].forget() for name in names}
    return replace(graph, types={**graph.types, **types}) if types else graph


def _with_derivations(graph: Graph) -> Graph:
    run = _Derivations(graph)
    for node in graph.nodes:
        run.add(node)
    graph.constants.derived |= run.inserted
    return with_nodes(graph, run.nodes)


@dataclass
class _Derivations:
    """One traversal of a graph; ``nodes`` is the new node list."""

    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    #: Inserted values, and the replacement of each value by reader scope.
    inserted: set[str] = field(default_factory=set)
    values: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = value_names(self.graph)

    def add(self, node: Node) -> None:
        """Append ``node``, after the nodes that compute its operands."""
        layer_weights = set(layer_constants(self.graph, node))
        inputs = tuple(
            name if name is None or name in layer_weights else self.value(name, node)
            for name in node.inputs
        )
        self.nodes.append(
            node if inputs == node.inputs else replace(node, inputs=inputs)
        )
        if self.is_computed(inputs):
            self.inserted |= {name for name in node.outputs if name}

    def is_computed(self, inputs: Iterable[str | None]) -> bool:
        """Return whether all operands are constant and one derives from a weight."""
        constants = self.graph.constants
        names = {name for name in inputs if name}
        if not all(name in constants or name in self.inserted for name in names):
            return False
        return any(
            name in self.inserted
            or (is_authored(self.graph, name) and is_float(constants[name].dtype))
            for name in names
        )

    def value(self, name: str, reader: Node) -> str:
        """Return the name of an operand: a new one if it is derived."""
        key = (name, reader.scope)
        if key in self.values:
            return self.values[key]
        if name in self.names or name not in self.graph.constants:
            return name
        if not is_derived(self.graph, name):
            return name
        derived = self.insert_folded(name, reader) or self.insert_view(name, reader)
        self.values[key] = derived or name
        return derived or name

    def insert_folded(self, name: str, reader: Node) -> str | None:
        """Insert the node that ``name`` was folded from; return its result."""
        recipe = self.graph.constants.recipes.get(name)
        if recipe is None:
            return None
        inputs = tuple(n and self.value(n, reader) for n in recipe.inputs)
        outputs = tuple(n and self.fresh(n) for n in recipe.outputs)
        node = _in_module_of(recipe, reader)
        self.nodes.append(replace(node, inputs=inputs, outputs=outputs))
        return outputs[recipe.outputs.index(name)]

    def insert_view(self, name: str, reader: Node) -> str | None:
        """Insert a view of the tensor that ``name`` derives from; return its result."""
        constants = self.graph.constants
        source = constants.source.get(name)
        if source is None:
            return None
        steps = _steps(constants[source], constants[name])
        if steps is None:
            return None
        shape, order = steps
        result = self.value(source, reader)
        for op, operand in (
            (Reshape(), integers(self.graph, list(shape))),
            (Transpose(perm=order), None),
        ):
            output = self.fresh(name)
            inputs = (result,) if operand is None else (result, operand)
            node = _in_module_of(Node(op, inputs, (output,)), reader)
            self.nodes.append(node)
            result = output
        return result

    def fresh(self, name: str) -> str:
        """Return an unused name for the value that replaces ``name``."""
        name = free_name(f"{name}.value", self.names, self.graph.constants)
        self.names.add(name)
        self.inserted.add(name)
        return name


def is_derived(graph: Graph, name: str) -> bool:
    """Return whether a constant was computed from another tensor of the author."""
    constants = graph.constants
    first = original(graph, name)
    if is_authored(graph, name):
        return first != name and not same_view(constants[first], constants[name])
    return any(is_authored(graph, one) for one in ancestors(graph, name))


def is_persistent(graph: Graph, constant: str) -> bool:
    """Return whether a stored array is in the ``state_dict``, as far as known.

    Programs list its keys, without non-persistent buffers and tensors that
    ``forward`` creates. Arrays that depend on a parameter stay, so that no foreign
    record is loaded beside them.
    """
    constants = graph.constants
    if not constants.trained or constant in graph.states:
        return True
    name = original(graph, constant)
    if name in constants.trained:
        return name not in constants.transient
    return is_derived(graph, constant)


def layer_constants(graph: Graph, node: Node) -> Iterator[str]:
    """Yield the constants that ``node`` holds as the weights of a layer."""
    layer = layer_of(graph, node)
    if layer is None:
        return
    names = {p: node.inputs[i] or "" for p, i in layer.weights.items()}
    floats = {p: n for p, n in names.items() if p not in layer.tables}
    stored = all(name in graph.constants for name in names.values())
    if stored and is_module(graph, layer, floats):
        yield from names.values()


def _steps(
    source: Array, view: Array
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the shape and permutation that turn ``source`` into ``view``, or None."""
    if source.size != view.size or not source.size or source.dtype != view.dtype:
        return None
    order = sorted(range(view.ndim), key=lambda n: (-view.strides[n], view.shape[n]))
    shape = tuple(view.shape[n] for n in order)
    back = tuple(order.index(n) for n in range(view.ndim))
    rebuilt = source.reshape(shape).transpose(back)
    return (shape, back) if np.array_equal(rebuilt, view, equal_nan=True) else None


def _in_module_of(node: Node, reader: Node) -> Node:
    """Return ``node`` in the module of ``reader``."""
    return replace(node, scope=reader.scope, classes=reader.classes)
