"""One layer of PyTorch's in place of ONNX's, and what others read of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from burn_import.passes.recurrent.recurrent_nodes import (
    STATES,
    Single,
    concatenation,
    is_spent,
    joined,
    permutation,
)
from burn_import.passes.recurrent.recurrent_weights import Parameters
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope
from burn_ir.graph import Node
from burn_ir.op import Op, operators
from burn_ir.ops.cells import GRUCell, LSTMCell, RNNCell
from burn_ir.ops.recurrent import GRU, LSTM, RNN
from burn_ir.ops.support import known_ints

#: Exchanges batch and time.
TURN = (1, 0, 2)


@dataclass
class Plan:
    """What the layers of a graph know of each other.

    A layer may have the batch first if what it reads is turned for it, and everybody
    turns its outputs back. Between two such layers nobody turns anything.
    """

    flow: Dataflow
    parameters: Parameters
    #: The nodes that turn a layer's outputs, by the last node of a stack that has any.
    ends: dict[int, list[Node]] = field(default_factory=dict)
    #: The first nodes of these stacks.
    heads: set[int] = field(default_factory=set)
    #: Outputs with the batch first by the name of those with time first.
    by_batch: dict[str, str] = field(default_factory=dict)

    def look_ahead(self, stack: list[Single]) -> None:
        """Note how the outputs of a stack are read; those after it are known."""
        head, last = stack[0], stack[-1]
        found: list[Node] = []
        absorbed: set[int] = set()
        for one in joined(self.flow, last):
            readers = self.flow.users.get(one.value, [])
            turning = [n for n in readers if len(permutation(n)) == 3]
            found += [one.node] if one.batch_first else turning
            absorbed.update(
                id(n)
                for n in readers
                if id(n) in self.heads and n.inputs[0] == one.value
            )
        absorbed.update(id(node) for node in found)
        if is_spent(self.flow, last.node.outputs[0], absorbed):
            self.ends[id(last.node)] = found
            if not head.states:
                self.heads.add(id(head.node))

    def place(self, stack: list[Single], states: list[str]) -> Mapping[int, list[Node]]:
        """What stands in place of nodes, by their identity: one layer for a ``stack``.

        ``states`` are its first states, none if they are zeros.
        """
        return _Placing(self, stack).replaced(states)


@dataclass
class _Placing:
    plan: Plan
    stack: list[Single]
    #: The nodes that the layer stands for.
    gone: list[Node] = field(default_factory=list)
    #: What turns its input.
    before: list[Node] = field(default_factory=list)
    #: What makes of its results what others read.
    after: list[Node] = field(default_factory=list)

    @property
    def flow(self) -> Dataflow:
        return self.plan.flow

    def replaced(self, states: list[str]) -> Mapping[int, list[Node]]:
        """The layer, with what turns its input and what others read of its results."""
        head = self.stack[0]
        nodes = [one.node for one in self.stack]
        weights = [
            name
            for number, one in enumerate(self.stack)
            for name in self.plan.parameters.stored(one.kind, one.packed, number)
        ]
        x, y, batch_first = self.sequences()
        omitted: list[str | None] = [None] * STATES[head.kind]
        lasts = [self.last_state(k) for k in range(1, 1 + STATES[head.kind])]
        scope, classes = common_scope(*nodes)
        layer = replace(
            nodes[0],
            op=_operator(head, len(nodes), batch_first),
            inputs=(x, *(states or omitted), *weights),
            outputs=(y, *lasts),
            scope=scope,
            classes=classes,
        )
        gone: dict[int, list[Node]] = {id(node): [] for node in (*nodes, *self.gone)}
        before, after = (
            [replace(n, scope=scope[:-1], classes=classes[:-1]) for n in made]
            for made in (self.before, self.after)
        )
        return {**gone, id(nodes[0]): [*before, layer, *after]}

    def sequences(self) -> tuple[str | None, str, bool]:
        """The input, the name of all outputs, whether the batch is first in both."""
        last = self.stack[-1]
        ends = self.plan.ends.get(id(last.node))
        x = None if ends is None else self.by_batch(self.stack[0].node.inputs[0])
        if ends is None or x is None:
            return self.stack[0].node.inputs[0], self.by_time(last), False
        y = self.turned(ends, last)
        values = [one.value for one in joined(self.flow, last) if not one.batch_first]
        self.plan.by_batch.update(dict.fromkeys(values, y))
        return x, y, True

    def by_batch(self, x: str | None) -> str | None:
        """The input with the batch first; None if it is not turned from there."""
        if x in self.plan.by_batch:
            return self.plan.by_batch[x]
        node = self.flow.made_by(x, "Transpose")
        perm = permutation(node)
        if node is None or x is None or len(perm) != 3:
            return None
        if perm == TURN:
            return node.inputs[0]
        name = self.flow.fresh(f"{x}.turned")
        turned = (perm[1], perm[0], perm[2])
        source = node.inputs[0]
        assert source is not None
        self.before.append(_node("Transpose", source, output=name, perm=turned))
        return name

    def turned(self, ends: list[Node], last: Single) -> str:
        """The name of all outputs with the batch first, which ``ends`` are made of."""
        plain = [node for node in ends if permutation(node) in ((), TURN)]
        y = self.same(plain, last)
        for node in ends:
            perm = permutation(node)
            if perm not in ((), TURN):
                self.gone.append(node)
                other = tuple(TURN[axis] for axis in perm)
                made = _node("Transpose", y, output=node.output, perm=other)
                self.after.append(made)
        return y

    def same(self, nodes: list[Node], last: Single) -> str:
        """The name of what all ``nodes`` make, which the layer now makes for them."""
        self.gone += nodes
        if not nodes:
            return self.flow.fresh(f"{last.node.outputs[0] or last.kind}.joined")
        name = nodes[0].output
        self.after += [_node("Identity", name, output=n.output) for n in nodes[1:]]
        return name

    def by_time(self, last: Single) -> str:
        """The name of all outputs with time first; others are made of it."""
        every = joined(self.flow, last)
        y = self.same([one.node for one in every if not one.batch_first], last)
        for one in every:
            if one.batch_first:
                self.gone.append(one.node)
                self.after.append(_node("Transpose", y, output=one.value, perm=TURN))
        name = last.node.outputs[0]
        if name is not None:
            self.after += self.with_directions(y, name, last)
        return y

    def with_directions(self, y: str, name: str, last: Single) -> list[Node]:
        """What makes ``name``, all outputs as ONNX has them, of ``y``."""
        if last.ways == 1:
            axes = integers(self.flow.graph, [1])
            return [_node("Unsqueeze", y, axes, output=name)]
        shape = integers(self.flow.graph, [0, 0, 2, last.hidden])
        split = self.flow.fresh(f"{name}.split")
        return [
            _node("Reshape", y, shape, output=split),
            _node("Transpose", split, output=name, perm=(0, 2, 1, 3)),
        ]

    def last_state(self, position: int) -> str | None:
        """The name of the last states of all layers; of each one, it is a part."""
        names = [(*one.node.outputs, None, None)[position] for one in self.stack]
        if len(names) == 1:
            return names[0]
        graph = self.flow.graph
        whole = concatenation(self.flow, names)
        if whole is not None:
            self.gone.append(whole)
            name = whole.output
        else:
            name = self.flow.fresh(f"{names[-1] or 'state'}.all")
        ways, axes = self.stack[0].ways, integers(graph, [0])
        for number, part in enumerate(names):
            if part is not None:
                bounds = [integers(graph, [n * ways]) for n in (number, number + 1)]
                self.after.append(_node("Slice", name, *bounds, axes, output=part))
        return name


def one_step(flow: Dataflow, parameters: Parameters, single: Single) -> list[Node]:
    """The call of a cell that a layer is of a sequence of one, as its weights' names
    say, with what others read of its results; nothing if it is none.
    """
    axes = integers(flow.graph, [0])
    inner = [
        _without_axis(flow, name) for name in (single.node.inputs[0], *single.states)
    ]
    names = parameters.cell(single.kind, single.packed)
    if not names or None in inner:
        return []
    count = STATES[single.kind]
    results = [flow.fresh(f"{single.node.outputs[0]}.step{k}") for k in range(count)]
    cell = replace(
        single.node,
        op=CELLS[single.kind](single.nonlinearity),
        inputs=(inner[0], *(inner[1:] or [None] * count), *names),
        outputs=tuple(results),
    )
    every, *lasts = (*single.node.outputs, None, None)[: 1 + count]
    made = [
        _node("Unsqueeze", state, axes, output=name)
        for state, name in zip(results, lasts, strict=True)
        if name is not None
    ]
    if every is not None:
        both = integers(flow.graph, [0, 1])
        made.append(_node("Unsqueeze", results[0], both, output=every))
    around = single.node.scope[:-1], single.node.classes[:-1]
    made = [replace(n, scope=around[0], classes=around[1]) for n in made]
    return [cell, *made]


#: What makes the operator of one step.
CELLS: Mapping[str, Callable[[str], Op]] = {
    "LSTM": lambda _: LSTMCell(),
    "GRU": lambda _: GRUCell(),
    "RNN": lambda kind: RNNCell("relu" if kind == "relu" else "tanh"),
}


def _without_axis(flow: Dataflow, name: str | None) -> str | None:
    """What a value is with one axis put in front."""
    node = flow.made_by(name, "Unsqueeze")
    if node is None or known_ints(flow.graph.type(node.inputs[1])) != (0,):
        return None
    return node.inputs[0]


def _operator(head: Single, layers: int, batch_first: bool) -> Op:
    both = head.ways == 2
    if head.kind == "LSTM":
        return LSTM(layers, batch_first, both)
    if head.kind == "GRU":
        return GRU(layers, batch_first, both)
    if head.nonlinearity == "relu":
        return RNN(layers, "relu", batch_first, both)
    return RNN(layers, "tanh", batch_first, both)


def _node(onnx: str, *inputs: str, output: str, **attrs: object) -> Node:
    return Node(operators()["", onnx](**attrs), inputs, (output,))
