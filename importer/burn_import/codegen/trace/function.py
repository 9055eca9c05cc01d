"""Tracing one function: nodes and module calls in, a block of statements out."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from burn import Tensor
from burn_import.codegen.trace.bodies import (
    trace_choice,
    trace_derivation,
    trace_repeat,
)
from burn_import.internal import located
from burn_import.provenance.path_segments import Path
from burn_import.provenance.trainable import is_kept
from burn_import.structure.module_tree import (
    Call,
    Fork,
    Item,
    Part,
    State,
    calls_of,
    changes_state,
)
from burn_import.tracing.extents import Extents, bindable
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.statements import (
    dims_in,
    drop_dead,
    operands as operands_of,
    symbols_in,
)
from burn_import.tracing.trace import (
    Block,
    Choice,
    ModuleCall,
    Symbol,
    Tracer,
)
from burn_ir.dim import Dim, Poly, symbol
from burn_ir.error_context import error_context
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.graph import Graph, Node
from burn_ir.infer import KNOWN_LIMIT
from burn_ir.op import Branch, Derivative, Layer, Repeat
from burn_ir.types import Type


@dataclass
class FunctionTrace:
    """A traced function: its parameters' symbols and its body."""

    parameters: list[Symbol]
    body: Block
    #: What each layer call of the body is, by its path.
    layers: dict[Path, Layer] = field(default_factory=dict)
    #: What the last results of the body replace once all are known.
    states: list[Symbol] = field(default_factory=list)

    @property
    def returned(self) -> list[Any]:
        """The results that the function gives back."""
        results = self.body.results
        return results[: len(results) - len(self.states)]

    @property
    def replacements(self) -> list[Any]:
        """What the states are afterwards."""
        return self.body.results[len(self.returned) :]


def trace_part(part: Part) -> FunctionTrace:
    """The ``__call__`` of ``part`` as statements."""
    run = Run(part.graph, part.layer_paths)
    run.called = {call.path for item in part.items for call in calls_of(item)}
    parameters = [run.parameter(name) for name in part.inputs]
    states = [run.state(state) for state in part.states]
    results = [*part.outputs, *(state.after for state in part.states)]
    body = run.block(part.items, results)
    return FunctionTrace(parameters, body, run.layers, states)


def drop_unread(trace: FunctionTrace) -> None:
    """Remove the statements of a function that nobody reads."""
    probe = Extents(Namespace())
    probe.plan(trace.parameters, trace.body)
    drop_dead(trace.body, probe.sources)


class Run:
    """The state of tracing one function; what nodes have inside is traced with it."""

    def __init__(self, graph: Graph, layer_paths: Mapping[int, Path]) -> None:
        self.graph = graph
        self.layer_paths = layer_paths
        self.tracer = Tracer()
        self.values: ChainMap[str, Any] = ChainMap()
        self.layers: dict[Path, Layer] = {}
        #: In the order in which they became known; those of a body go with it.
        self.extents: dict[Dim, None] = {}
        self.loops = 0
        #: The paths of the modules that are called.
        self.called: set[Path] = set()

    def parameter(self, name: str) -> Symbol:
        tensor = self.define(name, self.graph)
        symbol: Symbol = tensor.data
        return symbol

    def state(self, state: State) -> Symbol:
        """What a state is before it is replaced."""
        known = self.graph.type(state.before)
        tensor = self.tracer.symbol(known, state.before, state.constant)
        self.values[state.before] = tensor
        symbol: Symbol = tensor.data
        return symbol

    def define(self, name: str, graph: Graph) -> Tensor:
        """A symbol for a value that some statement or caller gives."""
        known = graph.type(name)
        tensor = self.tracer.symbol(None if known is None else known.forget(), name)
        self.values[name] = tensor
        self.note(known)
        return tensor

    def note(self, known: Type | None) -> None:
        if known is not None and known.shape is not None:
            found = (d for d in known.shape if isinstance(d, Poly))
            self.extents.update(dict.fromkeys(found))

    def block(self, items: Sequence[Item], outputs: Sequence[str]) -> Block:
        block = Block()
        self.tracer.blocks.append(block)
        for item in items:
            if isinstance(item, Fork):
                self.fork(item)
            elif isinstance(item, Call):
                self.call(item)
            else:
                self.node(item, self.graph)
        block.results = [self.read(name, self.graph) for name in outputs]
        self.tracer.blocks.pop()
        return block

    def read(self, name: str | None, graph: Graph) -> Any:
        """The tensor of a value; constants and folded values become symbols here."""
        if name is None:
            return None
        if name not in self.values:
            stored = name in graph.constants and name not in graph.constants.inlined
            constant = name if stored else ""
            known = graph.type(name)
            if known is not None and constant and is_kept(graph, constant):
                known = known.forget()  # read from the record, however small
            self.values[name] = self.tracer.symbol(known, name, constant)
        return self.values[name]

    def call(self, call: Call) -> None:
        args = tuple(self.read(name, self.graph) for name in call.inputs)
        targets = [self.define(name, self.graph).data for name in call.outputs]
        kept = changes_state(call.part)
        self.tracer.append(ModuleCall(call.path, args, targets, kept=kept))

    def fork(self, fork: Fork) -> None:
        """An ``If`` whose branches are calls of modules."""
        condition = self.read(fork.node.inputs[0], self.graph)
        blocks = []
        for call in (fork.then, fork.orelse):
            args = tuple(self.read(name, self.graph) for name in call.inputs)
            types = [call.part.graph.type(name) for name in call.outputs]
            results = [self.tracer.symbol(t.forget() if t else None) for t in types]
            made = ModuleCall(call.path, args, [result.data for result in results])
            blocks.append(Block([made], results))
        targets = self.targets(fork.node, self.graph)
        self.tracer.append(Choice(condition, blocks[0], blocks[1], targets))

    def targets(self, node: Node, graph: Graph) -> list[Symbol]:
        """A symbol for each result of a node."""
        return [
            Symbol() if name is None else self.define(name, graph).data
            for name in node.outputs
        ]

    def node(self, node: Node, graph: Graph) -> None:
        """Trace one node, unless its results are known and written where used."""
        name = node.name or next(filter(None, node.outputs), "")
        with located(f"node of {node.op.onnx}", name):
            self.trace_node(node, graph)

    def trace_node(self, node: Node, graph: Graph) -> None:
        """See :meth:`node`."""
        if self.folded(node, graph):
            return
        operands = [self.read(name, graph) for name in node.inputs]
        path = self.layer_paths.get(id(node))
        if path is not None:
            self.layer(node, graph, path, operands)
            return
        with error_context(node, self.graph.opsets):
            result = self.lowered(node, operands)
        if isinstance(result, Branch):
            trace_choice(self, result, node, graph)
            return
        if isinstance(result, Repeat):
            trace_repeat(self, result, node, graph)
            return
        if isinstance(result, Derivative):
            trace_derivation(self, result, node, graph)
            return
        results = result if isinstance(result, tuple) else (result,)
        for name, value in zip(node.outputs, results, strict=False):
            if name is not None:
                self.name(name, value, graph)

    def lowered(self, node: Node, operands: Sequence[Any]) -> Any:
        """The result of the node's ``lower``, all of whose extents can be written.

        An extent that comes in whole cannot always be taken apart (``batch * seq`` in
        a function that sees neither); then the lower is not told of it.
        """
        block = self.tracer.blocks[-1]
        start = len(block.statements)
        try:
            result = self.tracer.lower(node.op, operands)
        except (InvalidOperand, Undecided):  # an attribute must be known
            if not self.remind(operands):
                raise
            del block.statements[start:]
            result = self.tracer.lower(node.op, operands)
        made = [operands_of(statement) for statement in block.statements[start:]]
        if all(bindable(dim, self.extents) for dim in dims_in(made)):
            return result
        del block.statements[start:]
        read = list(symbols_in(operands))
        types = [value.type for value in read]
        for value in read:
            value.type = self.without_composites(value.type)
        result = self.tracer.lower(node.op, operands)
        for value, known in zip(read, types, strict=True):
            value.type = known
        return result

    def remind(self, operands: Sequence[Any]) -> bool:
        """Tell the contents of the author's tensors; False if all are known."""
        found = False
        for value in symbols_in(operands):
            if value.constant and value.known is None:
                value.type, found = self.graph.type(value.constant), True
        return found

    def without_composites(self, known: Type | None) -> Type | None:
        """``known`` with unnamed extents for those that only come in whole."""
        if known is None or known.shape is None:
            return known
        plain = {d for d in self.extents if str(d).isidentifier()}
        hidden = tuple(d if bindable(d, plain) else symbol("?") for d in known.shape)
        return replace(known, shape=hidden)

    def folded(self, node: Node, graph: Graph) -> bool:
        """Whether the results are known, and few enough numbers for the source."""
        types = [graph.types[name] for name in node.outputs if name is not None]
        if any(name in graph.constants.made for name in node.outputs):
            return False
        return all(
            t.known is not None
            and t.known.size <= KNOWN_LIMIT
            and all(bindable(d, self.extents) for d in _dims(t))
            for t in types
        )

    def name(self, name: str, value: Tensor, graph: Graph) -> None:
        """Give the result of a lower the name and type of the graph's value."""
        symbol: Symbol = value.data
        known = graph.types[name]
        if symbol.type is None:
            is_made = name in graph.constants.made
            symbol.type, symbol.name = known if is_made else known.forget(), name
        self.values[name] = value
        self.note(known)

    def layer(
        self, node: Node, graph: Graph, path: Path, operands: Sequence[Any]
    ) -> None:
        layer = node.op.layer(*(graph.type(name) for name in node.inputs))
        assert layer is not None
        self.layers[path] = layer
        args = layer.arguments(operands)
        targets = self.targets(node, graph)
        visit = any(path[:length] in self.called for length in range(len(path)))
        self.tracer.append(ModuleCall(path, args, targets, layer.results, visit))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within, what becomes known is known to the body of a node alone."""
        known = len(self.extents)
        self.values = self.values.new_child()
        yield
        self.values = self.values.parents
        while len(self.extents) > known:
            self.extents.popitem()


def _dims(known: Type) -> list[Dim]:
    assert known.known is not None
    if known.known.dtype != object:
        return []
    return [d for d in known.known.ravel().tolist() if isinstance(d, Poly)]
