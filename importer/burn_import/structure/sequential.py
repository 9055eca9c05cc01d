"""Detection of ``nn.Sequential``: chains of numbered layers and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from burn_import.provenance.path_segments import Path
from burn_import.tracing.trace import Apply, Block, Symbol, Tracer
from burn_ir.errors import Undecided
from burn_ir.graph import Graph, Node
from burn_ir.layers import layer_of
from burn_ir.op import Layer
from burn_ir.ops.shape import Flatten, Reshape
from burn_ir.types import Type

Users = Mapping[str, Sequence[Node]]


@dataclass(frozen=True)
class _Dataflow:
    """A graph with the readers of its values."""

    graph: Graph
    users: Users
    outputs: set[str]
    producers: Mapping[str, Node]

    def reader(self, node: Node) -> list[Node]:
        """Return the only reader of the result of ``node``, if there is one."""
        return sole_reader(node, self.users, self.outputs)

    def functions_after(self, node: Node, most: int) -> list[Node]:
        """Return up to ``most`` steps without weights in a chain after ``node``."""
        return functions_after(node, self.users, self.outputs, most, self._is_step)

    def steps_in_front(self, node: Node, most: int, path: Path) -> list[Node]:
        """Return up to ``most`` steps before ``node`` that the file has in ``path``."""
        steps: list[Node] = []
        while len(steps) < most:
            producer = self.producers.get(node.inputs[0] or "")
            if producer is None or not self._is_step_in(producer, path):
                break
            if node not in self.reader(producer) or not self._has_data(producer):
                break
            steps.insert(0, producer)
            node = producer
        own = [step.scope[len(path) : len(path) + 1] for step in steps]
        if any(name and name != (str(at),) for at, name in enumerate(own)):
            return []  # another member is in front, whose weights are read elsewhere
        return steps if all(own) or len(steps) == most else []

    def steps_behind(self, node: Node, path: Path) -> list[Node]:
        """Return one activation after ``node``, and all steps in ``path``."""
        steps = self.functions_after(node, 1)
        if any(isinstance(step.op, Flatten | Reshape) for step in steps):
            steps = []
        while after := self.reader(steps[-1] if steps else node):
            if not self._is_step_in(after[0], path):
                break
            steps += after
        return steps

    def _is_step_in(self, node: Node, path: Path) -> bool:
        return node.scope[: len(path)] == path and self._is_step(node)

    def _has_data(self, node: Node) -> bool:
        return has_data_input(node, self.graph)

    def _is_step(self, node: Node) -> bool:
        return bool(function_name(node) or stateless_layer_of(node, self.graph))


def find_sequences(
    graph: Graph, layers: Mapping[int, Path], users: Users
) -> dict[Path, list[list[Node]]]:
    """Return the nodes of each call of each ``nn.Sequential``, in order, by path.

    A list with anything but numbered layers of ``graph`` itself (a module with
    layers, a named layer, a layer that a subgraph calls) is not a sequence.
    """
    members: dict[Path, list[Node]] = {}
    for node in graph.nodes:
        path = layers.get(id(node))
        if path is not None and path[-1].isdigit():
            members.setdefault(path[:-1], []).append(node)
    outputs = set(graph.outputs)
    mixed = _lists_with_others(layers, members)
    members = {
        path: nodes
        for path, nodes in members.items()
        if path not in mixed
        and has_data_input(nodes[0], graph)
        and all(_is_unary_layer(node, graph) for node in nodes)
    }
    producers = {name: node for node in graph.nodes for name in node.outputs if name}
    flow = _Dataflow(graph, users, outputs, producers)
    sequences = {path: _chains(nodes, layers, flow) for path, nodes in members.items()}
    _end_before_others(sequences, layers)
    return {path: chains for path, chains in sequences.items() if chains}


def _end_before_others(
    sequences: dict[Path, list[list[Node]]], layers: Mapping[int, Path]
) -> None:
    """Remove a function after a sequence that is the first step of another one."""
    in_front = {
        id(node)
        for chains in sequences.values()
        for chain in chains
        for node in takewhile(lambda node: id(node) not in layers, chain)
    }
    for path, chains in sequences.items():
        if any(id(chain[-1]) in in_front for chain in chains):
            until = [_until_layer(chain, layers) for chain in chains]
            sequences[path] = until if min(map(len, until)) > 1 else []


def _chains(
    nodes: Sequence[Node], layers: Mapping[int, Path], flow: _Dataflow
) -> list[list[Node]]:
    """Return a chain for each call of a sequence; [] if one is none, or they differ."""
    calls: list[list[Node]] = []
    seen: set[Path] = set()
    for node in nodes:
        path = layers[id(node)]
        if path in seen or not calls:
            calls.append([])
            seen = set()
        seen.add(path)
        calls[-1].append(node)
    chains = [_chain(call, layers, flow) for call in calls]
    if not _are_alike(chains, layers):
        # A function after the last layer can belong to one caller.
        chains = [_until_layer(chain, layers) for chain in chains]
    is_sequence = min(map(len, chains)) > 1 and _are_alike(chains, layers)
    return chains if is_sequence else []


def _are_alike(chains: Sequence[Sequence[Node]], layers: Mapping[int, Path]) -> bool:
    """Return whether all chains have the same layers and functions."""
    first, *others = [
        [(layers.get(id(node)), type(node.op), node.op.attrs()) for node in chain]
        for chain in chains
    ]
    return all(other == first for other in others)


def _until_layer(chain: list[Node], layers: Mapping[int, Path]) -> list[Node]:
    """Return ``chain`` without the functions after its last layer."""
    while chain and id(chain[-1]) not in layers:
        chain = chain[:-1]
    return chain


def _lists_with_others(
    layers: Mapping[int, Path], members: Mapping[Path, Sequence[Node]]
) -> set[Path]:
    """Return the paths in ``members`` that have other layers inside."""
    own = {id(node) for nodes in members.values() for node in nodes}
    lists = set()
    for node, path in layers.items():
        # A member of a list does not count for its own list, only for enclosing ones.
        length = len(path) - 1 if node in own else len(path)
        lists |= {path[:n] for n in range(length)}
    return lists


def has_data_input(node: Node, graph: Graph) -> bool:
    """Return whether the operand is an input of the node's module.

    It is the first, or that of a layer. Stored arrays and integers that follow from
    dimensions are not passed to modules.
    """
    layer = layer_of(graph, node)
    at = 0 if layer is None else layer.data[0]
    name = node.inputs[at] if isinstance(at, int) else None
    if name is None or name in graph.constants:
        return False
    return graph.types[name].known is None


def _is_unary_layer(node: Node, graph: Graph) -> bool:
    """Return whether a layer takes one operand and has one result."""
    layer = layer_of(graph, node)
    if layer is None or len(node.outputs) != 1:
        return False
    return len(layer.data) == 1 and isinstance(layer.data[0], int)


def _chain(
    nodes: Sequence[Node], layers: Mapping[int, Path], flow: _Dataflow
) -> list[Node]:
    """Return ``nodes`` with the functions between and after them; [] if no chain."""
    chain: list[Node] = []
    last = -1
    for node in nodes:
        path = layers[id(node)]
        number = int(path[-1])
        if not chain:
            chain += flow.steps_in_front(node, number, path[:-1])
        else:
            chain += flow.functions_after(chain[-1], number - last - 1)
            if node not in flow.reader(chain[-1]):
                return []
        if number <= last:
            return []
        chain.append(node)
        last = number
    return chain + flow.steps_behind(chain[-1], path[:-1])


def sole_reader(node: Node, users: Users, outputs: set[str]) -> list[Node]:
    """Return the only reader of the only result of ``node``, if there is one."""
    results = [name for name in node.outputs if name is not None]
    if len(results) != 1 or results[0] in outputs:
        return []
    readers = users.get(results[0], [])
    alone = len(readers) == 1 and readers[0].inputs[0] == results[0]
    return list(readers) if alone else []


def functions_after(
    node: Node,
    users: Users,
    outputs: set[str],
    most: int,
    accepts: Callable[[Node], bool] = lambda node: function_name(node) is not None,
) -> list[Node]:
    """Return up to ``most`` nodes in a chain after ``node``, by default functions."""
    functions: list[Node] = []
    while len(functions) < most:
        after = sole_reader(node, users, outputs)
        if not after or not accepts(after[0]):
            break
        node = after[0]
        functions.append(node)
    return functions


def stateless_layer_of(node: Node, graph: Graph) -> Layer | None:
    """Return the module without weights that computes ``node`` from its first operand.

    The other operands must be numbers that are known.
    """
    types = [graph.type(name) for name in node.inputs]
    if not types or not isinstance(types[0], Type):
        return None
    for other in types[1:]:
        if other is not None and (not isinstance(other, Type) or other.known is None):
            return None
    return node.op.stateless_layer(*types)


def function_name(node: Node) -> str | None:
    """Return the primitive of a node that is a unary function, else None."""
    if len(node.inputs) != 1 or node.op.bodies():
        return None
    tracer, block = Tracer(), Block()
    tracer.blocks.append(block)
    operand = tracer.symbol(None)
    try:
        result = tracer.lower(node.op, [operand])
    except Undecided:
        return None
    if len(block.statements) != 1 or isinstance(result, tuple):
        return None
    (call,) = block.statements
    return _plain(call, operand.data) if isinstance(call, Apply) else None


def _plain(call: Apply, operand: Symbol) -> str | None:
    alone = len(call.args) == 1 and call.args[0].data is operand and not call.static
    name: str = call.primitive.name
    return name if alone else None
