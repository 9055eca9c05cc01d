"""Operands and results of ONNX's recurrent operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from burn_import.passes.recurrent.recurrent_weights import are_weights
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Node
from burn_ir.ops.support import known_ints

KINDS = ("LSTM", "GRU", "RNN")
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
ACTIVATIONS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}
#: Attributes that PyTorch's layers do not support.
FOREIGN = ("clip", "layout", "input_forget", "activation_alpha", "activation_beta")
#: The most nodes that are followed to prove that a value is not needed.
REACH = 64


@dataclass(frozen=True, eq=False)
class SingleLayer:
    """A node that is one layer: weights W, R and optional B, and non-zero states."""

    node: Node
    packed: list[str]
    states: list[str]
    nonlinearity: str
    ways: int
    hidden: int

    @property
    def kind(self) -> str:
        """The operator's name."""
        return self.node.op.onnx

    def fits(self, other: SingleLayer) -> bool:
        """Return whether both may be layers of one stack."""
        return (
            self.kind == other.kind
            and (self.ways, self.hidden) == (other.ways, other.hidden)
            and len(self.packed) == len(other.packed)
            and len(self.states) == len(other.states)
            and self.nonlinearity == other.nonlinearity
        )


@dataclass(frozen=True, eq=False)
class LayerOutputs:
    """The layer's outputs with directions joined, and the node that computes them."""

    value: str
    batch_first: bool
    node: Node


def single_of(flow: Dataflow, node: Node) -> SingleLayer | None:
    """Return the layer that a node is; None if PyTorch has no equivalent."""
    if node.op.domain or node.op.onnx not in KINDS:
        return None
    inputs = (*node.inputs, *[None] * 8)[:8]
    squash = nonlinearity_of(node)
    if not squash or inputs[4] is not None or inputs[7] is not None:
        return None
    if not are_weights(flow.graph, node.op.onnx, list(inputs[1:4])):
        return None
    packed = [name for name in inputs[1:4] if name is not None]
    states = inputs[5 : 5 + STATES[node.op.onnx]]
    initial_states = [name for name in states if name is not None]
    if any(flow.magnitude(name) != 0 for name in initial_states):
        if len(initial_states) != len(states):
            return None
    else:
        initial_states = []
    r = flow.graph.constants[packed[1]]
    ways = 2 if node.op.attrs()["direction"] == "bidirectional" else 1
    if r.shape[0] != ways:
        return None
    return SingleLayer(node, packed, initial_states, squash, ways, r.shape[2])


def without_zeros(flow: Dataflow, node: Node) -> Node:
    """Return ``node`` without initial states of zeros, if it is recurrent."""
    if node.op.domain or node.op.onnx not in KINDS:
        return node
    stop = 5 + STATES[node.op.onnx]
    states = [None if flow.magnitude(n) == 0 else n for n in node.inputs[5:stop]]
    inputs = (*node.inputs[:5], *states, *node.inputs[stop:])
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def nonlinearity_of(node: Node) -> str:
    """Return ``tanh`` or ``relu``; "" if PyTorch has no such layer."""
    attrs, kind = node.op.attrs(), node.op.onnx
    ways = {"forward": 1, "bidirectional": 2}.get(attrs["direction"], 0)
    if not ways or any(attrs.get(name) for name in FOREIGN):
        return ""
    if kind == "GRU" and not attrs["linear_before_reset"]:
        return ""
    activations = tuple(name.lower() for name in attrs["activations"] or ())
    if kind != "RNN":
        return "tanh" if activations in ((), ACTIVATIONS[kind] * ways) else ""
    used = set(activations[:ways])
    return used.pop() if used in ({"tanh"}, {"relu"}) else ""


def part(flow: Dataflow, name: str) -> tuple[str | None, int, int] | None:
    """Return the source, begin and end of a slice of the first axis.

    None if ``name`` is no such slice.
    """
    node = flow.made_by(name, "Slice")
    if node is None:
        return None
    extents = flow.extents(node.inputs[0])
    operands = (*node.inputs, None, None)[1:5]
    starts, ends, axes, steps = (known_ints(flow.graph.type(n)) for n in operands)
    if not extents or starts is None or ends is None or len(starts) != 1:
        return None
    if operands[3] is not None and steps != (1,):
        return None
    if (axes or (0 if operands[2] is None else None,)) != (0,):
        return None
    if not isinstance(extents[0], int):
        return None
    start, end, _ = slice(starts[0], ends[0]).indices(extents[0])
    return node.inputs[0], start, end


def concatenation(
    flow: Dataflow, names: Sequence[str | None], start: bool = False
) -> Node | None:
    """Return the node that concatenates values along axis 0, in this order.

    With ``start`` it may have further operands.
    """
    for node in flow.users.get(names[0] or "", []):
        if node.op.domain or node.op.onnx != "Concat":
            continue
        read = list(node.inputs[: len(names)] if start else node.inputs)
        if read == list(names) and node.op.attrs()["axis"] in (0, -3):
            return node
    return None


def joined_outputs(flow: Dataflow, single: SingleLayer) -> list[LayerOutputs]:
    """Return all values equal to the outputs ``[time, batch, directions * hidden]``."""
    values = []
    every = single.node.outputs[0]
    for node in flow.users.get(every or "", []):
        if single.ways == 1 and _drops_direction(flow, node, single):
            values.append(LayerOutputs(node.output, False, node))
        perm = permutation(node)
        if perm not in ((0, 2, 1, 3), (2, 0, 1, 3)):
            continue
        is_batch_first = perm != (0, 2, 1, 3)
        for reader in flow.users.get(node.output, []):
            if reader.inputs[0] == node.output and _joins(
                flow, reader, single, is_batch_first
            ):
                values.append(LayerOutputs(reader.output, is_batch_first, reader))
    return values


def _drops_direction(flow: Dataflow, node: Node, single: SingleLayer) -> bool:
    """Return whether a node removes the axis of the one direction."""
    if node.op.onnx == "Squeeze" and not node.op.domain and len(node.inputs) > 1:
        return known_ints(flow.graph.type(node.inputs[1])) in ((1,), (-3,))
    reads = node.inputs[0] == single.node.outputs[0]
    return reads and _joins(flow, node, single, False, are_split=True)


def _joins(
    flow: Dataflow,
    node: Node,
    single: SingleLayer,
    is_batch_first: bool,
    are_split: bool = False,
) -> bool:
    """Return whether a reshape joins the last two axes (or ``are_split`` axes)."""
    if node.op.onnx != "Reshape" or node.op.domain:
        return False
    width = single.ways * single.hidden
    x = flow.extents(single.node.inputs[0])
    if len(x) == 3:
        lead = (x[1], x[0]) if is_batch_first else (x[0], x[1])
        if flow.extents(node.output) == (*lead, width):
            return True
    shape = known_ints(flow.graph.type(node.inputs[1]))
    copied = shape in ((0, 0, -1), (0, 0, width)) and not are_split
    return copied and not node.op.attrs()["allowzero"]


def is_spent(flow: Dataflow, name: str | None, absorbed: set[int]) -> bool:
    """Return whether only ``absorbed`` nodes, or nodes without use, read a value."""
    waiting, met = [name], {name}
    while waiting:
        value = waiting.pop()
        if value is None:
            continue
        if value in flow.outputs or len(met) > REACH:
            return False
        for reader in flow.users.get(value, []):
            if id(reader) in absorbed:
                continue
            new = [n for n in reader.outputs if n is not None and n not in met]
            met.update(new)
            waiting += new
    return True


def permutation(node: Node | None) -> tuple[int, ...]:
    """Return the permutation of a Transpose, () for other nodes."""
    if node is None or node.op.onnx != "Transpose" or node.op.domain:
        return ()
    return tuple(node.op.attrs()["perm"] or ())
