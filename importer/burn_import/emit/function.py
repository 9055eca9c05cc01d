"""Tracing one function: nodes and module calls in, a block of statements out."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from burn import Tensor, ops
from burn.dtypes import bool_
from burn.primitive import recording
from burn_import.source.extents import bindable
from burn_import.source.trace import (
    Block,
    Choice,
    Derivation,
    ModuleCall,
    Repetition,
    Symbol,
    Tracer,
)
from burn_import.source.walk import dims_in, operands as operands_of, symbols_in
from burn_import.structure.parts import Call, Fork, Item, Part, Path
from burn_ir.blame import blamed
from burn_ir.containers import sequence_of
from burn_ir.dim import Dim, Poly, symbol
from burn_ir.evaluate import joined_rows, piece
from burn_ir.graph import Graph, Node
from burn_ir.op import Branch, Derivative, Layer, Repeat
from burn_ir.types import Type


@dataclass
class FunctionTrace:
    """A traced function: its parameters' symbols and its body."""

    parameters: list[Symbol]
    body: Block
    #: What each layer call of the body is, by its path.
    layers: dict[Path, Layer] = field(default_factory=dict)


def trace_part(part: Part) -> FunctionTrace:
    """The ``__call__`` of ``part`` as statements."""
    run = _Run(part.graph, part.layer_paths)
    parameters = [run.parameter(name) for name in part.inputs]
    body = run.block(part.items, part.outputs, part.inputs)
    return FunctionTrace(parameters, body, run.layers)


class _Run:
    def __init__(self, graph: Graph, layer_paths: Mapping[int, Path]) -> None:
        self.graph = graph
        self.layer_paths = layer_paths
        self.tracer = Tracer()
        self.values: ChainMap[str, Any] = ChainMap()
        self.layers: dict[Path, Layer] = {}
        #: In the order in which they became known; those of a body go with it.
        self.extents: dict[Dim, None] = {}
        self.loops = 0

    def parameter(self, name: str) -> Symbol:
        tensor = self.define(name, self.graph)
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

    def block(
        self, items: Sequence[Item], outputs: Sequence[str], inputs: Sequence[str] = ()
    ) -> Block:
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
            constant = name if name in graph.constants else ""
            self.values[name] = self.tracer.symbol(graph.type(name), name, constant)
        return self.values[name]

    def call(self, call: Call) -> None:
        args = tuple(self.read(name, self.graph) for name in call.inputs)
        targets = [self.define(name, self.graph).data for name in call.outputs]
        self.tracer.append(ModuleCall(call.path, args, targets))

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
        if self.folded(node, graph):
            return
        operands = [self.read(name, graph) for name in node.inputs]
        path = self.layer_paths.get(id(node))
        if path is not None:
            self.layer(node, graph, path, operands)
            return
        with blamed(node, self.graph.opsets):
            result = self.lowered(node, operands)
        if isinstance(result, Branch):
            self.choice(result, node, graph)
            return
        if isinstance(result, Repeat):
            self.repeat(result, node, graph)
            return
        if isinstance(result, Derivative):
            self.derivation(result, node, graph)
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

    def without_composites(self, known: Type | None) -> Type | None:
        """``known`` with unnamed extents for those that only come in whole."""
        if known is None or known.shape is None:
            return known
        plain = {d for d in self.extents if str(d).isidentifier()}
        hidden = tuple(d if bindable(d, plain) else symbol("?") for d in known.shape)
        return replace(known, shape=hidden)

    def folded(self, node: Node, graph: Graph) -> bool:
        types = [graph.types[name] for name in node.outputs if name is not None]
        return all(
            t.known is not None and all(bindable(d, self.extents) for d in _dims(t))
            for t in types
        )

    def name(self, name: str, value: Tensor, graph: Graph) -> None:
        """Give the result of a lower the name and type of the graph's value."""
        symbol: Symbol = value.data
        known = graph.types[name]
        if symbol.type is None:
            symbol.type, symbol.name = known.forget(), name
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
        self.tracer.append(ModuleCall(path, args, targets, layer.results))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within, what becomes known is known to the body of a node alone."""
        known = len(self.extents)
        self.values = self.values.new_child()
        yield
        self.values = self.values.parents
        while len(self.extents) > known:
            self.extents.popitem()

    def choice(self, branch: Branch, node: Node, graph: Graph) -> None:
        blocks = []
        for body in (branch.then, branch.orelse):
            with self.inside():
                self.values.update(zip(body.inputs, branch.operands, strict=True))
                blocks.append(self.body(body))
        targets = self.targets(node, graph)
        self.tracer.append(Choice(branch.condition, blocks[0], blocks[1], targets))

    def repeat(self, loop: Repeat, node: Node, graph: Graph) -> None:
        """The rounds of a loop, and what is made of their pieces after them."""
        with self.inside():
            counter, state, items, block = self.rounds(loop)
        count = len(loop.carried)
        carried = [
            Symbol() if name is None else self.define(name, graph).data
            for name in node.outputs[:count]
        ]
        carried += [Symbol() for _ in range(count - len(carried))]
        lists = [
            Symbol(sequence_of(rows.piece), name or "")
            for rows, name in zip_longest(loop.rows, node.outputs[count:])
        ]
        check, initial = "", list(loop.carried)
        if loop.counted:
            check = self.check(loop, block, state, initial, carried)
        trips = None if items else self.trips(loop)
        targets = carried + lists
        self.tracer.append(
            Repetition(trips, counter, initial, state, block, check, targets, items)
        )
        some = not check and _positive(self.trips(loop) if loop.slices else trips)
        for name, rows, made in zip(
            node.outputs[count:], loop.rows, lists, strict=False
        ):
            if name is not None:
                with recording(self.tracer):
                    joined = joined_rows(Tensor(made, self.tracer), rows, some)
                self.name(name, joined, graph)

    def rounds(
        self, loop: Repeat
    ) -> tuple[Poly, list[Symbol], list[tuple[Symbol, Any]], Block]:
        """The round's number, the carried values, the items, and what it computes."""
        self.loops += 1
        body, names = loop.body, list(loop.body.inputs)
        block = Block()
        self.tracer.blocks.append(block)
        if loop.counted:
            counter = self.head(body, names)
            del names[:2]
        else:
            counter = symbol(f"?round{self.loops}")
        self.extents[counter] = None
        state = [self.define(name, body).data for name in names[: len(loop.carried)]]
        del names[: len(loop.carried)]
        items = self.pieces(loop, names, counter)
        captured = names[len(loop.slices) :]
        self.values.update(zip(captured, loop.captured, strict=True))
        self.fill(block, body)
        return counter, state, items, block

    def pieces(
        self, loop: Repeat, names: Sequence[str], counter: Poly
    ) -> list[tuple[Symbol, Any]]:
        """Define what a round gets of the values that are taken apart.

        These are returned if ``for`` takes all of them apart by itself.
        """
        apart = [one for one in loop.slices if not one.whole]
        plain = not any(one.axis or one.reverse for one in apart)
        items = []
        for one, name in zip(loop.slices, names, strict=False):
            if one.whole:
                self.values[name] = one.value
            elif plain:
                items.append((self.define(name, loop.body).data, one.value))
            else:
                with recording(self.tracer):
                    taken = piece(one, counter)
                self.values[name] = taken
                taken.data.type, taken.data.name = loop.body.types[name].forget(), name
                self.note(taken.data.type)
        return items

    def head(self, body: Graph, names: Sequence[str]) -> Poly:
        """Define the round's number, and that there is one; the number's symbol."""
        number, going = (body.types[name] for name in names[:2])
        assert number.known is not None
        certain = going.with_known(np.full([1] * len(going.dims), True))
        self.values[names[0]] = self.tracer.symbol(number, names[0])
        self.values[names[1]] = self.tracer.symbol(certain, names[1])
        counter: Poly = number.known.reshape(-1)[0]
        return counter

    def derivation(self, of: Derivative, node: Node, graph: Graph) -> None:
        """A function of its own, and its gradient."""
        block = Block()
        self.tracer.blocks.append(block)
        names = of.body.inputs
        with self.inside():
            state = [self.define(n, of.body).data for n in names[: len(of.operands)]]
            self.values.update(zip(names[len(state) :], of.captured, strict=True))
            self.fill(block, of.body)
        targets = self.targets(node, graph)
        targets += [Symbol() for _ in range(of.count - len(targets))]
        args = list(of.operands)
        self.tracer.append(Derivation(of.name, args, state, block, targets))

    def check(
        self,
        loop: Repeat,
        block: Block,
        state: list[Symbol],
        initial: list[Any],
        carried: list[Symbol],
    ) -> str:
        """When to look whether there is another round; the arguments learn of it."""
        following = block.results.pop(0)
        first = loop.condition
        sure = first is None or _is_true(first)
        if sure and _is_true(following):
            return ""
        if sure:
            block.results.append(following)
            return "after"
        initial.insert(0, first)
        state.insert(0, Symbol(Type(bool_, ())))
        carried.insert(0, Symbol())
        if _is_true(following):  # it decides about the first round, and so about all
            following = Tensor(state[0], self.tracer)
        block.results.insert(0, following)
        return "before"

    def trips(self, loop: Repeat) -> Any:
        """The number of rounds as it is written."""
        if loop.trips is not None or not loop.slices:
            known = None if loop.trips is None else loop.trips.data.known
            return loop.trips if known is None else known.reshape(-1).tolist()[0]
        first = next(one for one in loop.slices if not one.whole)
        with recording(self.tracer):
            if first.axis is None:
                return ops.sequence_length(first.value)
            if first.value.data.type.shape is None:
                return ops.shape(first.value)[first.axis]
        return first.value.shape[first.axis]

    def body(self, body: Graph) -> Block:
        block = Block()
        self.tracer.blocks.append(block)
        self.fill(block, body)
        return block

    def fill(self, block: Block, body: Graph) -> None:
        """Trace the nodes of a body into the open ``block``, and close it."""
        for node in body.nodes:
            self.node(node, body)
        block.results = [self.read(name, body) for name in body.outputs]
        self.tracer.blocks.pop()


def _is_true(condition: Any) -> bool:
    known = condition.data.known
    return known is not None and bool(known.all())


def _positive(trips: Any) -> bool:
    return isinstance(trips, int) and trips > 0


def _dims(known: Type) -> list[Dim]:
    assert known.known is not None
    if known.known.dtype != object:
        return []
    return [d for d in known.known.ravel().tolist() if isinstance(d, Poly)]
