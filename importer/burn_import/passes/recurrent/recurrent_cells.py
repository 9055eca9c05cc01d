"""Recovers ``nn.LSTMCell``, ``nn.GRUCell`` and ``nn.RNNCell`` from equations.

Exporters write a step of a recurrent layer as two linear layers, a split of their
results, and the gates. Steps with the same weights are calls of one cell.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from burn_import.passes.layers.linear import linear
from burn_import.passes.recurrent.cell_weights import CellWeights, Products
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops.cells import GRUCell, LSTMCell, RNNCell

#: Operators of linear layers.
PRODUCTS = frozenset({"Linear", "Gemm", "MatMul"})


def recurrent_cells(graph: Graph) -> Graph:
    """Return ``graph`` with cells for steps of an LSTM, a GRU or an RNN.

    The weights must be constants. A step whose weights have keys of linear layers
    stays, since the author wrote it so. Results may differ by rounding.
    """
    kinds = {node.op.onnx for node in graph.nodes}
    if kinds.isdisjoint(PRODUCTS) or kinds.isdisjoint({"Tanh", "Relu"}):
        return graph
    plain = linear(graph)
    result = _Recovery(plain).result()
    return graph if result is plain else result


@dataclass(frozen=True, eq=False)
class Step:
    """A matched step: its operator, inputs, results and nodes.

    ``first`` is the node that computes the first result; ``results`` are all of them.
    """

    op: Op
    products: Products
    states: tuple[str, ...]
    results: tuple[str, ...]
    gates: tuple[int, ...]
    first: Node
    nodes: tuple[Node, ...]


@dataclass
class _Recovery:
    graph: Graph
    flow: Dataflow = field(init=False)
    weights: CellWeights = field(init=False)
    #: The scope of the first step with these weights, used by all calls of the cell.
    scopes: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.flow = Dataflow(self.graph)
        self.weights = CellWeights(self.flow)

    def result(self) -> Graph:
        """Return the graph with the recovered cells."""
        steps = [step for node in self.graph.nodes for step in self.steps(node)]
        self.weights.learn([(step.products, step.results[0]) for step in steps])
        instead: dict[int, list[Node]] = {}
        for step in steps:
            cell = self.cell(step)
            if cell is not None:
                instead.update(
                    {id(n): [] for n in step.nodes if self.produces_result(step, n)}
                )
                instead[id(step.first)] = [cell]
        nodes = [n for node in self.graph.nodes for n in instead.get(id(node), [node])]
        return with_nodes(self.graph, nodes)

    def produces_result(self, step: Step, node: Node) -> bool:
        """Return whether a node produces one of the results of ``step``."""
        return any(name in step.results for name in node.outputs)

    def steps(self, node: Node) -> Iterator[Step]:
        """Yield the step whose last result ``node`` produces, if it does."""
        if node.op.domain or node.outputs[0] is None:
            return
        for find in (self.lstm, self.gru, self.rnn):
            for step in find(node):
                if self.is_closed(step):
                    yield step
                    return

    def is_closed(self, step: Step) -> bool:
        """Return whether no outside node reads inner values, linear layers aside."""
        among = {id(node) for node in step.nodes}
        return all(
            name not in self.flow.outputs
            and all(id(n) in among for n in self.flow.users.get(name, []))
            for node in step.nodes
            for name in node.outputs
            if name is not None and name not in step.results
        )

    def operand_pairs(
        self, name: str | None, op: str
    ) -> Iterator[tuple[Node, str, str]]:
        """Yield the node ``op`` that produces a value, with operands in both orders."""
        node = self.flow.made_by(name, op)
        if node is not None and None not in node.inputs:
            a, b = (str(n) for n in node.inputs)
            yield node, a, b
            yield node, b, a

    def lstm(self, node: Node) -> Iterator[Step]:
        """Yield steps ``o * tanh(c)`` with ``c = f * c0 + i * g``."""
        for last, a, b in self.operand_pairs(node.outputs[0], "Mul"):
            output, squashed = (
                self.flow.made_by(a, "Sigmoid"),
                self.flow.made_by(b, "Tanh"),
            )
            if output is None or squashed is None:
                continue
            for add, p, q in self.operand_pairs(squashed.inputs[0], "Add"):
                for keep, f, c in self.operand_pairs(p, "Mul"):
                    for new, i, g in self.operand_pairs(q, "Mul"):
                        gates = [
                            self.flow.made_by(i, "Sigmoid"),
                            self.flow.made_by(f, "Sigmoid"),
                            self.flow.made_by(g, "Tanh"),
                            output,
                        ]
                        nodes = [last, squashed, add, keep, new]
                        yield from self.lstm_step(gates, c, add, nodes)

    def lstm_step(
        self, gates: list[Node | None], c: str, add: Node, step_nodes: list[Node]
    ) -> Iterator[Step]:
        present = [gate for gate in gates if gate is not None]
        if len(present) != 4:
            return
        cut = self.weights.cut([gate.inputs[0] for gate in present])
        total = None if cut is None else self.weights.total(cut.source)
        if cut is None or total is None:
            return
        results = (step_nodes[0].output, add.output)
        nodes = (*total.nodes, *cut.nodes, *present, *step_nodes)
        yield Step(LSTMCell(), total, ("", c), results, cut.gates, add, nodes)

    def gru(self, node: Node) -> Iterator[Step]:
        """Yield steps ``(h - n) * z + n`` or ``(1 - z) * n + z * h``."""
        for add, p, q in self.operand_pairs(node.outputs[0], "Add"):
            for new, z, minus in self.operand_pairs(p, "Mul"):
                sub = self.flow.made_by(minus, "Sub")
                if sub is not None and sub.inputs[1] == q and sub.inputs[0]:
                    nodes = [add, new, sub]
                    yield from self.gru_step(z, q, sub.inputs[0], nodes)
            for new, n, minus in self.operand_pairs(p, "Mul"):
                sub = self.flow.made_by(minus, "Sub")
                if sub is None or self.flow.scalar(sub.inputs[0]) != 1:
                    continue
                for keep, z, h in self.operand_pairs(q, "Mul"):
                    if sub.inputs[1] == z:
                        nodes = [add, new, sub, keep]
                        yield from self.gru_step(z, n, h, nodes)

    def gru_step(
        self, z: str, n: str, h: str, step_nodes: list[Node]
    ) -> Iterator[Step]:
        """Yield steps with update gate ``z``, candidate ``n`` and old state ``h``."""
        update, new = self.flow.made_by(z, "Sigmoid"), self.flow.made_by(n, "Tanh")
        if update is None or new is None:
            return
        for add, xn, scaled in self.operand_pairs(new.inputs[0], "Add"):
            for product, r, hn in self.operand_pairs(scaled, "Mul"):
                reset = self.flow.made_by(r, "Sigmoid")
                if reset is None:
                    continue
                for sum_r, xr, hr in self.operand_pairs(reset.inputs[0], "Add"):
                    for sum_z, xz, hz in self.operand_pairs(update.inputs[0], "Add"):
                        inner = [add, product, reset, sum_r, sum_z, update, new]
                        nodes = [*step_nodes, *inner]
                        yield from self.gru_cell((xr, xz, xn), (hr, hz, hn), h, nodes)

    def gru_cell(
        self, x: tuple[str, ...], h: tuple[str, ...], state: str, step_nodes: list[Node]
    ) -> Iterator[Step]:
        cuts = [self.weights.cut(list(pieces)) for pieces in (x, h)]
        if cuts[0] is None or cuts[1] is None or cuts[0].gates != cuts[1].gates:
            return
        products = self.weights.two(cuts[0].source, cuts[1].source, state)
        if products is not None:
            results = (step_nodes[0].output,)
            nodes = (*products.nodes, *cuts[0].nodes, *cuts[1].nodes, *step_nodes)
            gates = cuts[0].gates
            yield Step(
                GRUCell(), products, (state,), results, gates, step_nodes[0], nodes
            )

    def rnn(self, node: Node) -> Iterator[Step]:
        """Yield ``tanh`` or ``relu`` of a sum, if the weights have names of a cell."""
        if node.op.onnx not in ("Tanh", "Relu") or node.inputs[0] is None:
            return
        total = self.weights.total(node.inputs[0], gates=1)
        if total is not None and self.weights.are_named(total):
            op = RNNCell("relu" if node.op.onnx == "Relu" else "tanh")
            nodes = (*total.nodes, node)
            yield Step(op, total, ("",), (node.output,), (0,), node, nodes)

    def cell(self, step: Step) -> Node | None:
        """Return the node that replaces ``step``; None if its weights do not fit."""
        cell_operands = self.weights.operands(step.products, step.gates)
        if cell_operands is None:
            return None
        x, h, weights = cell_operands
        states: list[str | None] = [h, *step.states[1:]]
        shapes = [self.flow.extents(name) for name in states]
        if any(len(shape) != 2 for shape in shapes):
            return None
        rows = {1, *self.flow.extents(x)[:1]}
        zeros = all(self.flow.magnitude(name) == 0 for name in states)
        if zeros and all(shape[0] in rows for shape in shapes):
            states = [None] * len(states)
        parts = sorted(step.nodes, key=lambda n: self.weights.order[id(n)])
        scope, classes = self.scopes.setdefault(weights, common_scope(*parts))
        return replace(
            step.first,
            op=step.op,
            inputs=(x, *states, *weights),
            outputs=step.results,
            scope=scope,
            classes=classes,
        )
