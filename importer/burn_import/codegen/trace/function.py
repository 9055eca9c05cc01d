"""Tracing of one function: nodes and module calls to a block of statements."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from burn import Tensor
from burn_import.codegen.sequence_steps import layer_forms
from burn_import.codegen.trace.bodies import (
    trace_choice,
    trace_derivation,
    trace_repeat,
)
from burn_import.internal import located
from burn_import.provenance.path_segments import Path
from burn_import.provenance.trainable import is_kept, is_trained
from burn_import.structure.module_tree import (
    IfCall,
    Instruction,
    ModuleNode,
    State,
    SubmoduleCall,
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
    Apply,
    Block,
    Choice,
    ModuleCall,
    Origin,
    Symbol,
    Tracer,
)
from burn_ir.dim import Dim, Poly, symbol
from burn_ir.error_context import error_context
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.graph import Graph, Node
from burn_ir.layers import layer_of
from burn_ir.op import Branch, Derivative, Layer, Repeat
from burn_ir.types import Type

#: Known contents that stand in the source; more are computed when the model runs.
LONGEST_LITERAL = 8
#: The same for tables of formulas, such as positions from the length of a sequence.
LONGEST_TABLE = 4


@dataclass
class FunctionTrace:
    """A traced function: its parameters' symbols and its body."""

    parameters: list[Symbol]
    body: Block
    #: The layers that the body calls, by path.
    layers: dict[Path, Layer] = field(default_factory=dict)
    #: States that the last results of the body replace after all are computed.
    states: list[Symbol] = field(default_factory=list)

    @property
    def returned(self) -> list[Any]:
        """The results that the function returns."""
        results = self.body.results
        return results[: len(results) - len(self.states)]

    @property
    def replacements(self) -> list[Any]:
        """The states after the call."""
        return self.body.results[len(self.returned) :]


def trace_part(part: ModuleNode) -> FunctionTrace:
    """Return the ``__call__`` of ``part`` as statements."""
    run = Run(part.graph, part.layer_paths)
    run.called = {call.path for item in part.items for call in calls_of(item)}
    parameters = [run.parameter(name) for name in part.inputs]
    states = [run.state(state) for state in part.states]
    results = [*part.outputs, *(state.after for state in part.states)]
    body = run.block(part.items, results)
    return FunctionTrace(parameters, body, run.layers, states)


def drop_unread(trace: FunctionTrace) -> None:
    """Remove the statements of a function whose results are not read."""
    probe = Extents(Namespace(), is_partial=True)
    probe.plan(trace.parameters, trace.body)
    drop_dead(trace.body, probe.sources)


class Run:
    """The state of tracing one function, including subgraphs of its nodes."""

    def __init__(self, graph: Graph, layer_paths: Mapping[int, Path]) -> None:
        self.graph = graph
        self.layer_paths = layer_paths
        self.tracer = Tracer()
        self.values: ChainMap[str, Any] = ChainMap()
        self.layers: dict[Path, Layer] = {}
        #: Available dimensions in order of definition; those of a subgraph are removed.
        self.extents: dict[Dim, None] = {}
        self.loops = 0
        #: The paths of the modules that are called.
        self.called: set[Path] = set()
        #: Results that are copies of weights.
        self.copies: set[str] = set()

    def parameter(self, name: str) -> Symbol:
        tensor = self.define(name, self.graph)
        symbol: Symbol = tensor.data
        return symbol

    def state(self, state: State) -> Symbol:
        """Return the symbol of a state before it is replaced."""
        value_type = self.graph.type(state.before)
        tensor = self.tracer.symbol(value_type, state.before, state.constant)
        self.values[state.before] = tensor
        symbol: Symbol = tensor.data
        return symbol

    def define(self, name: str, graph: Graph) -> Tensor:
        """Return a symbol for a value that a statement or caller provides."""
        value_type = graph.type(name)
        tensor = self.tracer.symbol(
            None if value_type is None else value_type.forget(), name
        )
        self.values[name] = tensor
        self.note(value_type)
        return tensor

    def note(self, value_type: Type | None) -> None:
        if value_type is not None and value_type.shape is not None:
            symbols = (d for d in value_type.shape if isinstance(d, Poly))
            self.extents.update(dict.fromkeys(symbols))

    def block(self, items: Sequence[Instruction], outputs: Sequence[str]) -> Block:
        block = Block()
        self.tracer.blocks.append(block)
        for item in items:
            if isinstance(item, IfCall):
                self.fork(item)
            elif isinstance(item, SubmoduleCall):
                self.call(item)
            else:
                self.node(item, self.graph)
        block.results = [self.read(name, self.graph) for name in outputs]
        self.tracer.blocks.pop()
        return block

    def read(self, name: str | None, graph: Graph) -> Any:
        """Return the tensor of a value; constants and folded values become symbols."""
        if name is None:
            return None
        if name not in self.values:
            stored = name in graph.constants and name not in graph.constants.inlined
            constant = name if stored else ""
            value_type = graph.type(name)
            kept = bool(constant) and (
                constant in graph.constants.measured or is_kept(graph, constant)
            )
            if value_type is not None and kept:
                value_type = value_type.forget()  # read from the record, however small
            self.values[name] = self.tracer.symbol(value_type, name, constant)
        return self.values[name]

    def call(self, call: SubmoduleCall) -> None:
        args = tuple(self.read(name, self.graph) for name in call.inputs)
        targets = [self.define(name, self.graph).data for name in call.outputs]
        kept = changes_state(call.part)
        self.tracer.append(ModuleCall(call.path, args, targets, kept=kept))

    def fork(self, fork: IfCall) -> None:
        """Trace an ``If`` whose branches are module calls."""
        condition = self.read(fork.node.inputs[0], self.graph)
        blocks = []
        for call in (fork.then, fork.orelse):
            args = tuple(self.read(name, self.graph) for name in call.inputs)
            types = [call.part.graph.type(name) for name in call.outputs]
            results = [self.tracer.symbol(t.forget() if t else None) for t in types]
            call_statement = ModuleCall(
                call.path, args, [result.data for result in results]
            )
            blocks.append(Block([call_statement], results))
        targets = self.targets(fork.node, self.graph)
        self.tracer.append(Choice(condition, blocks[0], blocks[1], targets))

    def targets(self, node: Node, graph: Graph) -> list[Symbol]:
        """Return a symbol for each result of a node."""
        return [
            Symbol() if name is None else self.define(name, graph).data
            for name in node.outputs
        ]

    def node(self, node: Node, graph: Graph) -> None:
        """Trace one node, unless its results are emitted as literals."""
        name = node.name or next(filter(None, node.outputs), "")
        opset = self.graph.opsets.get(node.op.domain)
        self.tracer.origin = Origin(name, node.op.onnx, opset)
        with located(f"node of {node.op.onnx}", name):
            self.trace_node(node, graph)

    def trace_node(self, node: Node, graph: Graph) -> None:
        """Trace one node; see :meth:`node`."""
        if self.folded(node, graph):
            return
        operands = [self.read(name, graph) for name in node.inputs]
        path = self.layer_paths.get(id(node))
        if path is not None:
            self.layer(node, graph, path, operands)
            return
        start = len(self.tracer.blocks[-1].statements)
        with error_context(node, self.graph.opsets):
            result = self.lowered(node, operands)
        self.note_step(node, graph, start)
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

    def note_step(self, node: Node, graph: Graph, start: int) -> None:
        """Note how a sequence would write the only statement of ``node``, if it can."""
        call, *others = (*self.tracer.blocks[-1].statements[start:], None)
        if isinstance(call, Apply) and others == [None]:
            is_plain = len(call.args) == 1 and not call.static
            plain = ((f"ops.{call.primitive.name}",),) if is_plain else ()
            call.forms = layer_forms(node, graph) or plain

    def lowered(self, node: Node, operands: Sequence[Any]) -> Any:
        """Return the result of the node's ``lower``, with only bindable dimensions.

        A dimension of an input cannot always be decomposed (``batch * seq`` in
        a function that has neither); the ``lower`` is then repeated with it
        unknown.
        """
        block = self.tracer.blocks[-1]
        start = len(block.statements)
        try:
            result = self.tracer.lower(node.op, operands)
        except (InvalidOperand, Undecided):  # a constant operand is required
            if not self.remind(operands):
                raise
            del block.statements[start:]
            result = self.tracer.lower(node.op, operands)
        operand_lists = [
            operands_of(statement) for statement in block.statements[start:]
        ]
        if all(bindable(dim, self.extents) for dim in dims_in(operand_lists)):
            return result
        del block.statements[start:]
        read = list(symbols_in(operands))
        types = [value.type for value in read]
        for value in read:
            value.type = self.without_composites(value.type)
        result = self.tracer.lower(node.op, operands)
        for value, value_type in zip(read, types, strict=True):
            value.type = value_type
        return result

    def remind(self, operands: Sequence[Any]) -> bool:
        """Set the contents of stored tensors; return False if all are already set."""
        is_changed = False
        for value in symbols_in(operands):
            if value.constant and value.known is None:
                value.type, is_changed = self.graph.type(value.constant), True
        return is_changed

    def without_composites(self, value_type: Type | None) -> Type | None:
        """Return ``value_type`` with non-decomposable dimensions unnamed."""
        if value_type is None or value_type.shape is None:
            return value_type
        plain = {d for d in self.extents if str(d).isidentifier()}
        hidden = tuple(
            d if bindable(d, plain) else symbol("?") for d in value_type.shape
        )
        return replace(value_type, shape=hidden)

    def folded(self, node: Node, graph: Graph) -> bool:
        """Return whether the results are constants small enough for a literal."""
        types = [graph.types[name] for name in node.outputs if name is not None]
        if any(name in graph.constants.made for name in node.outputs):
            return False
        if not all(
            t.known is not None
            and t.known.size <= _longest(t)
            and all(bindable(d, self.extents) for d in _dims(t))
            for t in types
        ):
            return False
        if any(map(partial(self.is_weight, graph), node.inputs)):
            self.copies.update(name for name in node.outputs if name is not None)
            return False
        return True

    def is_weight(self, graph: Graph, name: str | None) -> bool:
        """Return whether a value is a weight or a copy of one."""
        if name is None or name in self.copies:
            return name is not None
        if name in graph.types or name not in graph.constants:
            return False
        return name not in graph.constants.inlined and is_trained(graph, name)

    def name(self, name: str, value: Tensor, graph: Graph) -> None:
        """Assign the result of a lower the name and type of the graph's value."""
        symbol: Symbol = value.data
        value_type = graph.types[name]
        if symbol.type is None:
            is_made = name in graph.constants.made
            symbol.type, symbol.name = (
                value_type if is_made else value_type.forget()
            ), name
        self.values[name] = value
        self.note(value_type)

    def layer(
        self, node: Node, graph: Graph, path: Path, operands: Sequence[Any]
    ) -> None:
        layer = layer_of(graph, node)
        assert layer is not None
        self.layers[path] = layer
        args = layer.arguments(operands)
        targets = self.targets(node, graph)
        visit = any(path[:length] in self.called for length in range(len(path)))
        self.tracer.append(ModuleCall(path, args, targets, layer.results, visit))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Context for a subgraph, whose values and dimensions are forgotten on exit."""
        count = len(self.extents)
        self.values = self.values.new_child()
        yield
        self.values = self.values.parents
        while len(self.extents) > count:
            self.extents.popitem()


def _dims(value_type: Type) -> list[Dim]:
    assert value_type.known is not None
    if value_type.known.dtype != object:
        return []
    return [d for d in value_type.known.ravel().tolist() if isinstance(d, Poly)]


def _longest(t: Type) -> int:
    """Return the number of elements that a literal may have."""
    is_table = t.rank > 1 and any(True for _ in _dims(t))
    return LONGEST_TABLE if is_table else LONGEST_LITERAL
