"""Recovers ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` from ONNX's operators.

An ONNX node is one layer, with time first and the directions on their own axis.
Exporters write a stack as consecutive nodes with transposes and reshapes in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from burn_import.passes.recurrent.recurrent_nodes import (
    KINDS,
    SingleLayer,
    concatenation,
    is_spent,
    joined_outputs,
    part,
    single_of,
    without_zeros,
)
from burn_import.passes.recurrent.recurrent_results import Plan, one_step
from burn_import.passes.recurrent.recurrent_weights import Parameters, owner
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.dropout import TrackedDropout


def recurrent(graph: Graph) -> Graph:
    """Return ``graph`` with PyTorch's recurrent layers for ONNX's operators.

    The weights must be constants. Consecutive layers become one if the exporter, the
    names of the weights or a shared state show that they are one module. The batch
    stays first where it is, directions are joined, and initial states of zeros are
    omitted. Operators that PyTorch's layers cannot express stay.
    """
    if all(node.op.onnx not in KINDS or node.op.domain for node in graph.nodes):
        return graph
    return _Recovery(graph).result()


@dataclass
class _Recovery:
    graph: Graph
    flow: Dataflow = field(init=False)
    parameters: Parameters = field(init=False)
    #: The layers, by their node's id.
    singles: dict[int, SingleLayer] = field(default_factory=dict)
    #: The dropout of the outputs that the layer above reads, by its node's id.
    dropout: dict[int, float] = field(default_factory=dict)
    #: The nodes that replace a node, by its id.
    instead: dict[int, list[Node]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.flow = Dataflow(self.graph)
        self.parameters = Parameters(self.graph)

    def result(self) -> Graph:
        """Return the graph with the recovered layers."""
        for node in self.graph.nodes:
            single = single_of(self.flow, node)
            if single is None:
                continue
            step = one_step(self.flow, self.parameters, single)
            if step:
                self.instead[id(node)] = step
            else:
                self.singles[id(node)] = single
        stacks = list(self.stacks())
        plan = Plan(self.flow, self.parameters)
        for stack in reversed(stacks):
            plan.look_ahead(stack)
        for stack in stacks:
            states = self.first_states(stack)
            assert states is not None
            rate = self.dropout[id(stack[1].node)] if len(stack) > 1 else 0.0
            self.instead.update(plan.replacements(stack, states, rate))
        nodes = [n for node in self.graph.nodes for n in self.replacements_of(node)]
        return with_nodes(self.graph, nodes)

    def replacements_of(self, node: Node) -> list[Node]:
        """Return the nodes that replace ``node``."""
        replacement = self.instead.get(id(node))
        return [without_zeros(self.flow, node)] if replacement is None else replacement

    def stacks(self) -> Iterable[list[SingleLayer]]:
        """Yield the layers, consecutive ones of a module together."""
        above: dict[int, SingleLayer] = {}
        for single in self.singles.values():
            other = self.next_layer(single)
            if other is not None:
                above[id(single.node)] = other
        tops = {id(single.node) for single in above.values()}
        for node_id, single in self.singles.items():
            if node_id in tops:
                continue
            stack = [single]
            while id(stack[-1].node) in above:
                stack.append(above[id(stack[-1].node)])
            rates = {self.dropout[id(one.node)] for one in stack[1:]}
            if self.first_states(stack) is None or len(rates) > 1:
                yield from ([layer] for layer in stack)
            else:
                yield stack

    def next_layer(self, single: SingleLayer) -> SingleLayer | None:
        """Return the next layer of the stack, if it alone reads all outputs."""
        name = single.node.outputs[0]
        for outputs in joined_outputs(self.flow, single):
            dropped = self.dropped(outputs.value)
            value = outputs.value if dropped is None else dropped.output
            readers = self.flow.users.get(value, [])
            tops = [self.singles.get(id(n)) for n in readers if id(n) in self.singles]
            if outputs.batch_first or not tops or tops[0] is None:
                continue
            top = tops[0]
            fed = top.node.inputs[0] == value and single.fits(top)
            if not fed or not self.are_together(single, top):
                continue
            if not is_spent(self.flow, value, {id(top.node)}):
                return None
            self.dropout[id(top.node)] = _ratio(dropped)
            if dropped and not is_spent(self.flow, outputs.value, {id(dropped)}):
                return None
            return top if is_spent(self.flow, name, {id(outputs.node)}) else None
        return None

    def dropped(self, value: str) -> Node | None:
        """Return the dropout that reads ``value``."""
        readers = self.flow.users.get(value, [])
        nodes = [node for node in readers if isinstance(node.op, TrackedDropout)]
        return nodes[0] if len(nodes) == 1 else None

    def are_together(self, single: SingleLayer, top: SingleLayer) -> bool:
        """Return whether the file shows that two layers are of one module."""
        named = [
            self.parameters.named(layer.kind, layer.packed) for layer in (single, top)
        ]
        if named[0] is not None and named[1] is not None:
            same = named[0].module == named[1].module
            return same and named[1].number == named[0].number + 1
        owners = {owner(layer.packed) for layer in (single, top)}
        if owners != {""}:
            return len(owners) == 1
        if single.node.scope or top.node.scope:
            return single.node.scope == top.node.scope
        return self.share_a_state(single, top)

    def share_a_state(self, single: SingleLayer, top: SingleLayer) -> bool:
        """Return whether initial states are parts of one value, or last states join."""
        for a, b in zip(single.states, top.states, strict=False):
            first, second = part(self.flow, a), part(self.flow, b)
            if first is not None and second is not None and first[0] == second[0]:
                return True
        ends = zip(single.node.outputs[1:], top.node.outputs[1:], strict=False)
        return any(concatenation(self.flow, [a, b], start=True) for a, b in ends)

    def first_states(self, stack: list[SingleLayer]) -> list[str] | None:
        """Return the initial states of all layers; None if not of one value."""
        if len(stack) == 1:
            return stack[0].states
        states = []
        for names in zip(*(single.states for single in stack), strict=True):
            parts = [part(self.flow, name) for name in names]
            whole = None if parts[0] is None else parts[0][0]
            ways = stack[0].ways
            due = [(whole, k * ways, (k + 1) * ways) for k in range(len(stack))]
            if whole is None or parts != due:
                return None
            if self.flow.extents(whole)[0] != len(stack) * ways:
                return None
            states.append(whole)
        return states


def _ratio(node: Node | None) -> float:
    """Return the ratio of a dropout, 0 without one."""
    return node.op.ratio if node and isinstance(node.op, TrackedDropout) else 0.0
