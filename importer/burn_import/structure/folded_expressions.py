"""Compute in the source what was folded from the author's tensors.

Folding gives passes the contents and the layout of every constant. What is left of that
in the end, such as a parameter in another shape, is no tensor of the author's: a record
would hold it under a key that means something else. The nodes that it was folded from
are put back, so that the record holds the tensor itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from burn.dtypes import is_float
from burn_import.provenance.exporter_folding import is_module
from burn_import.provenance.weight_owners import is_authored, original
from burn_import.rewriting.arrays import integers, same_view
from burn_import.rewriting.graphs import apply_with_bodies, value_names, with_nodes
from burn_ir.error_context import error_context
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.names import free_name
from burn_ir.ops.shape import Reshape, Transpose
from burn_ir.types import Array


def with_derivations(graph: Graph) -> Graph:
    """Return ``graph`` with nodes for all that is derived from the author's tensors.

    Stay constants: the tensors themselves, and what a layer holds as its weights.
    """
    inserted: set[str] = set()
    result = apply_with_bodies(lambda inner: _with_derivations(inner, inserted), graph)
    if result is not graph:
        result = infer(result)
    return apply_with_bodies(lambda inner: with_unknown(inner, inserted), result)


def with_unknown(graph: Graph, names: set[str]) -> Graph:
    """Return ``graph``, in which nobody knows the contents of the values ``names``.

    Known contents would be written down instead of computed.
    """
    types = {n: t.forget() for n, t in graph.types.items() if n in names}
    return replace(graph, types={**graph.types, **types}) if types else graph


def _with_derivations(graph: Graph, inserted: set[str]) -> Graph:
    run = _Derivations(graph)
    for node in graph.nodes:
        run.add(node)
    inserted |= run.inserted
    return with_nodes(graph, run.nodes)


@dataclass
class _Derivations:
    """One pass over the nodes of a graph; ``nodes`` are the new ones."""

    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    #: The values that were inserted, and by what they stand for in which scope.
    inserted: set[str] = field(default_factory=set)
    values: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    taken: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = value_names(self.graph)

    def add(self, node: Node) -> None:
        """Append ``node``, after the nodes that make its operands."""
        held = set(layer_constants(self.graph, node))
        inputs = tuple(
            name if name is None or name in held else self.value(name, node)
            for name in node.inputs
        )
        self.nodes.append(node if inputs == node.inputs else reading(node, inputs))
        if self.is_computed(inputs):
            self.inserted |= {name for name in node.outputs if name}

    def is_computed(self, inputs: Iterable[str | None]) -> bool:
        """Whether operands are constants alone, and one is the author's numbers."""
        constants = self.graph.constants
        names = {name for name in inputs if name}
        if not names <= constants.keys() | self.inserted:
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
        if name in self.taken or name not in self.graph.constants:
            return name
        if not is_derived(self.graph, name):
            return name
        derived = self.folded(name, reader) or self.viewed(name, reader)
        self.values[key] = derived or name
        return derived or name

    def folded(self, name: str, reader: Node) -> str | None:
        """Return the value that the node makes which ``name`` was folded from."""
        recipe = self.graph.constants.recipes.get(name)
        if recipe is None:
            return None
        inputs = tuple(n and self.value(n, reader) for n in recipe.inputs)
        outputs = tuple(n and self.fresh(n) for n in recipe.outputs)
        node = _beside(recipe, reader)
        self.nodes.append(replace(node, inputs=inputs, outputs=outputs))
        return outputs[recipe.outputs.index(name)]

    def viewed(self, name: str, reader: Node) -> str | None:
        """Return the value of a view on the tensor that ``name`` was derived from."""
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
            node = _beside(Node(op, inputs, (output,)), reader)
            self.nodes.append(node)
            result = output
        return result

    def fresh(self, name: str) -> str:
        """Return a name for a value that stands for ``name``."""
        name = free_name(f"{name}.value", self.taken, self.graph.constants)
        self.taken.add(name)
        self.inserted.add(name)
        return name


def is_derived(graph: Graph, name: str) -> bool:
    """Whether a constant is computed from a tensor of the author's, and is not it."""
    constants = graph.constants
    first = original(graph, name)
    if is_authored(graph, name):
        return first != name and not same_view(constants[first], constants[name])
    seen, waiting = {name}, [name]
    while waiting:  # each once: operands may be shared many times over
        recipe = constants.recipes.get(waiting.pop())
        operands = () if recipe is None else recipe.inputs
        new = {n for n in operands if n is not None} - seen
        if any(is_authored(graph, n) for n in new):
            return True
        seen |= new
        waiting += new
    return False


def is_persistent(graph: Graph, constant: str) -> bool:
    """Return whether a stored array is in the ``state_dict``, as far as the file tells.

    Programs list what is: neither buffers that the author excluded, nor tensors that
    ``forward`` makes. What depends on a parameter stays, so that no record of others
    is loaded beside it.
    """
    constants = graph.constants
    if not constants.trained or constant in graph.states:
        return True
    name = original(graph, constant)
    if name in constants.trained:
        return name not in constants.transient
    return is_derived(graph, constant)


def layer_constants(graph: Graph, node: Node) -> Iterator[str]:
    """The constants that ``node`` holds as the weights of a layer."""
    types = [graph.type(name) for name in node.inputs]
    with error_context(node, graph.opsets):
        layer = node.op.layer(*types)
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
    """The shape and order of axes that make ``view`` of all elements of ``source``."""
    if source.size != view.size or not source.size or source.dtype != view.dtype:
        return None
    order = sorted(range(view.ndim), key=lambda n: (-view.strides[n], view.shape[n]))
    shape = tuple(view.shape[n] for n in order)
    back = tuple(order.index(n) for n in range(view.ndim))
    rebuilt = source.reshape(shape).transpose(back)
    return (shape, back) if np.array_equal(rebuilt, view, equal_nan=True) else None


def _beside(node: Node, reader: Node) -> Node:
    """``node`` in the module of ``reader``."""
    return replace(node, scope=reader.scope, classes=reader.classes)


def reading(node: Node, inputs: tuple[str | None, ...]) -> Node:
    """``node`` with other operands; bodies read what is captured by these names."""
    return replace(node, inputs=inputs)
