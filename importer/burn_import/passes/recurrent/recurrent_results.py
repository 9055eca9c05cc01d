"""Replacement of ONNX's recurrent nodes by one layer of PyTorch's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from burn_import.passes.recurrent.recurrent_nodes import (
    STATES,
    SingleLayer,
    concatenation,
    is_spent,
    joined_outputs,
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

#: The permutation that swaps batch and time.
TURN = (1, 0, 2)


@dataclass
class Plan:
    """Decisions about layouts that the recurrent layers of a graph share.

    A layer may use ``batch_first`` if its input is transposed for it and all readers
    transpose its outputs back. Between two such layers no transposes remain.
    """

    flow: Dataflow
    parameters: Parameters
    #: The nodes that transpose a layer's outputs, by the last node of its stack.
    ends: dict[int, list[Node]] = field(default_factory=dict)
    #: The first nodes of these stacks.
    heads: set[int] = field(default_factory=set)
    #: Outputs with the batch first, by the name of those with time first.
    by_batch: dict[str, str] = field(default_factory=dict)

    def look_ahead(self, stack: list[SingleLayer]) -> None:
        """Record how a stack's outputs are read; later stacks are known."""
        head, last = stack[0], stack[-1]
        layout_nodes: list[Node] = []
        absorbed: set[int] = set()
        for joined_value in joined_outputs(self.flow, last):
            readers = self.flow.users.get(joined_value.value, [])
            turning = [n for n in readers if len(permutation(n)) == 3]
            layout_nodes += [joined_value.node] if joined_value.batch_first else turning
            absorbed.update(
                id(n)
                for n in readers
                if id(n) in self.heads and n.inputs[0] == joined_value.value
            )
        absorbed.update(id(node) for node in layout_nodes)
        if is_spent(self.flow, last.node.outputs[0], absorbed):
            self.ends[id(last.node)] = layout_nodes
            if not head.states:
                self.heads.add(id(head.node))

    def replacements(
        self, stack: list[SingleLayer], states: list[str], dropout: float
    ) -> Mapping[int, list[Node]]:
        """Return replacements of nodes by their id: one layer for a ``stack``.

        ``states`` are its initial states; empty if they are zeros. ``dropout`` is the
        ratio of dropout between its layers.
        """
        return _Replacement(self, stack, dropout).build(states)


@dataclass
class _Replacement:
    plan: Plan
    stack: list[SingleLayer]
    dropout: float
    #: The nodes that the layer replaces.
    gone: list[Node] = field(default_factory=list)
    #: The transpose of its input.
    before: list[Node] = field(default_factory=list)
    #: Nodes that compute the values that others read from its results.
    after: list[Node] = field(default_factory=list)

    @property
    def flow(self) -> Dataflow:
        return self.plan.flow

    def build(self, states: list[str]) -> Mapping[int, list[Node]]:
        """Return the layer and the nodes that convert its input and results."""
        head = self.stack[0]
        nodes = [layer_node.node for layer_node in self.stack]
        weights = [
            name
            for number, layer_node in enumerate(self.stack)
            for name in self.plan.parameters.stored(
                layer_node.kind, layer_node.packed, number
            )
        ]
        x, y, batch_first = self.sequences()
        omitted: list[str | None] = [None] * STATES[head.kind]
        lasts = [self.last_state(k) for k in range(1, 1 + STATES[head.kind])]
        scope, classes = common_scope(*nodes)
        layer = replace(
            nodes[0],
            op=_operator(head, len(nodes), batch_first, self.dropout),
            inputs=(x, *(states or omitted), *weights),
            outputs=(y, *lasts),
            scope=scope,
            classes=classes,
        )
        gone: dict[int, list[Node]] = {id(node): [] for node in (*nodes, *self.gone)}
        before, after = (
            [replace(n, scope=scope[:-1], classes=classes[:-1]) for n in group]
            for group in (self.before, self.after)
        )
        return {**gone, id(nodes[0]): [*before, layer, *after]}

    def sequences(self) -> tuple[str | None, str, bool]:
        """Return the input, the name of all outputs, and ``batch_first``."""
        last = self.stack[-1]
        ends = self.plan.ends.get(id(last.node))
        first = self.stack[0].node.inputs[0]
        if ends is None and self.transposes_itself(first):
            return self.batch_first_input(first), self.batch_and_time_output(last), True
        x = None if ends is None else self.batch_first_input(first)
        if ends is None or x is None:
            return first, self.time_first_output(last), False
        y = self.batch_first_output(ends, last)
        values = [
            joined_value.value
            for joined_value in joined_outputs(self.flow, last)
            if not joined_value.batch_first
        ]
        self.plan.by_batch.update(dict.fromkeys(values, y))
        return x, y, True

    def transposes_itself(self, x: str | None) -> bool:
        """Return whether the module of the first layer transposes its input.

        PyTorch's does so for ``batch_first`` alone.
        """
        scope = self.stack[0].node.scope
        node = self.flow.made_by(x, "Transpose")
        is_own = node is not None and node.scope == scope != ()
        return is_own and permutation(node) == TURN

    def batch_and_time_output(self, last: SingleLayer) -> str:
        """Return the name of all outputs with the batch first; others transpose it."""
        every = joined_outputs(self.flow, last)
        y = self.common_result([one.node for one in every if one.batch_first], last)
        for one in every:
            if not one.batch_first:
                self.gone.append(one.node)
                self.after.append(_node("Transpose", y, output=one.value, perm=TURN))
                self.plan.by_batch[one.value] = y
        if last.node.outputs[0] is not None:
            name = self.flow.fresh(f"{last.node.outputs[0]}.time")
            self.after.append(_node("Transpose", y, output=name, perm=TURN))
            self.after += self.with_directions(name, last.node.outputs[0], last)
        return y

    def batch_first_input(self, x: str | None) -> str | None:
        """Return the input with the batch first; None if it is not transposed."""
        if x in self.plan.by_batch:
            return self.plan.by_batch[x]
        node = self.flow.made_by(x, "Transpose")
        perm = permutation(node)
        if node is None or x is None or len(perm) != 3:
            return None
        if perm == TURN:
            return node.inputs[0]
        name = self.flow.fresh(f"{x}.turned")
        order = (perm[1], perm[0], perm[2])
        source = node.inputs[0]
        assert source is not None
        self.before.append(_node("Transpose", source, output=name, perm=order))
        return name

    def batch_first_output(self, ends: list[Node], last: SingleLayer) -> str:
        """Return the name of all outputs with the batch first, read by ``ends``."""
        plain = [node for node in ends if permutation(node) in ((), TURN)]
        y = self.common_result(plain, last)
        for node in ends:
            perm = permutation(node)
            if perm not in ((), TURN):
                self.gone.append(node)
                other = tuple(TURN[axis] for axis in perm)
                transpose = _node("Transpose", y, output=node.output, perm=other)
                self.after.append(transpose)
        return y

    def common_result(self, nodes: list[Node], last: SingleLayer) -> str:
        """Return the common result of ``nodes``, which the layer replaces."""
        self.gone += nodes
        if not nodes:
            return self.flow.fresh(f"{last.node.outputs[0] or last.kind}.joined")
        name = nodes[0].output
        self.after += [_node("Identity", name, output=n.output) for n in nodes[1:]]
        return name

    def time_first_output(self, last: SingleLayer) -> str:
        """Return the name of all outputs with time first."""
        every = joined_outputs(self.flow, last)
        y = self.common_result(
            [
                joined_value.node
                for joined_value in every
                if not joined_value.batch_first
            ],
            last,
        )
        for joined_value in every:
            if joined_value.batch_first:
                self.gone.append(joined_value.node)
                self.after.append(
                    _node("Transpose", y, output=joined_value.value, perm=TURN)
                )
        name = last.node.outputs[0]
        if name is not None:
            self.after += self.with_directions(y, name, last)
        return y

    def with_directions(self, y: str, name: str, last: SingleLayer) -> list[Node]:
        """Return the nodes that compute ``name``, in ONNX's layout, from ``y``."""
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
        """Return the name of all layers' last states; slices give each one's."""
        names = [
            (*layer_node.node.outputs, None, None)[position]
            for layer_node in self.stack
        ]
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


def one_step(flow: Dataflow, parameters: Parameters, single: SingleLayer) -> list[Node]:
    """Return the call of a cell for a layer over a sequence of length one.

    The names of the weights must be those of a cell. The nodes that compute the values
    read by others follow. Empty if the layer is not such a call.
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
    nodes = [
        _node("Unsqueeze", state, axes, output=name)
        for state, name in zip(results, lasts, strict=True)
        if name is not None
    ]
    if every is not None:
        both = integers(flow.graph, [0, 1])
        nodes.append(_node("Unsqueeze", results[0], both, output=every))
    around = single.node.scope[:-1], single.node.classes[:-1]
    nodes = [replace(n, scope=around[0], classes=around[1]) for n in nodes]
    return [cell, *nodes]


#: Constructors of the cell operators.
CELLS: Mapping[str, Callable[[str], Op]] = {
    "LSTM": lambda _: LSTMCell(),
    "GRU": lambda _: GRUCell(),
    "RNN": lambda kind: RNNCell("relu" if kind == "relu" else "tanh"),
}


def _without_axis(flow: Dataflow, name: str | None) -> str | None:
    """Return the value under an added first axis."""
    node = flow.made_by(name, "Unsqueeze")
    if node is None or known_ints(flow.graph.type(node.inputs[1])) != (0,):
        return None
    return node.inputs[0]


def _operator(head: SingleLayer, layers: int, batch_first: bool, dropout: float) -> Op:
    both = head.ways == 2
    if head.kind == "LSTM":
        return LSTM(layers, batch_first, both, dropout)
    if head.kind == "GRU":
        return GRU(layers, batch_first, both, dropout)
    if head.nonlinearity == "relu":
        return RNN(layers, batch_first, both, dropout, nonlinearity="relu")
    return RNN(layers, batch_first, both, dropout)


def _node(onnx: str, *inputs: str, output: str, **attrs: object) -> Node:
    return Node(operators()["", onnx](**attrs), inputs, (output,))
