"""Recurrent layers: one call of ATen is a stack, one node of ONNX is a layer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.aten.nn.activation import apply_dropout
from burn_import.frontends.torch_export.aten.nn.projected_lstm import ProjectedStack
from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Packed,
    Value,
)
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel
from burn_ir.types import Array


@dataclass(frozen=True)
class Kind:
    """A recurrent operator of ONNX, and the order of its gates in PyTorch."""

    op_type: str
    gates: tuple[int, ...]
    activation: str = ""

    @property
    def states(self) -> int:
        """Number of states."""
        return 2 if self.op_type == "LSTM" else 1


RNN_TANH = Kind("RNN", (0,), "Tanh")
RNN_RELU = Kind("RNN", (0,), "Relu")
LSTM = Kind("LSTM", (0, 3, 1, 2))  # i f g o -> i o f c
GRU = Kind("GRU", (1, 0, 2))  # r z n -> z r h


@dataclass(frozen=True)
class Rate:
    """The ratio of the dropout between layers, which a program in training applies."""

    ratio: float = 0.0
    is_training: bool = False

    def drop(self, g: Builder, x: Value) -> Value:
        """Return outputs of a layer as the next one reads them."""
        return apply_dropout(g, x, self.ratio, self.is_training)


@rule("aten.lstm.input")
def lstm(
    g: Builder,
    input: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Sequence[Value]:
    stack = params, has_biases, num_layers, bidirectional
    return Stack(g, LSTM, *stack, rate=Rate(dropout, train)).run(input, hx, batch_first)


def single(kind: Kind) -> None:
    """Register the rule of a layer with one state."""

    def apply(
        g: Builder,
        input: Value,
        hx: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Sequence[Value]:
        stack = params, has_biases, num_layers, bidirectional
        return Stack(g, kind, *stack, rate=Rate(dropout, train)).run(
            input, [hx], batch_first
        )

    names = {"Tanh": "rnn_tanh", "Relu": "rnn_relu"}
    rule(f"aten.{names.get(kind.activation, 'gru')}.input")(apply)


single(GRU)
single(RNN_TANH)
single(RNN_RELU)


@dataclass(frozen=True)
class Stack:
    """The layers of one call."""

    g: Builder
    kind: Kind
    params: Sequence[Value]
    has_biases: bool
    layers: int
    bidirectional: bool
    #: The length of each sequence, int32; None if all are full.
    lengths: Value | None = None
    rate: Rate = field(default_factory=Rate)

    def run(
        self, x: Value, states: Sequence[Value], batch_first: bool
    ) -> Sequence[Value]:
        """Return the outputs, and the last states of all layers."""
        g = self.g
        if self.rate.ratio and self.is_projected and self.layers > 1:
            if self.rate.is_training:
                raise UnsupportedModel(
                    "dropout between LSTMs with proj_size is not supported"
                )
            if g.out.restores_dropout:
                g.out.left_out_dropout.add(self.rate.ratio)
        if x.rank != _RANK:
            raise UnsupportedModel(
                "expected a batch axis in the input of a recurrent layer"
            )
        if batch_first:
            x = swap_time_and_batch(g, x)
        x, *last = (
            self._projected(x, states) if self.is_projected else self._run(x, states)
        )
        return [swap_time_and_batch(g, x) if batch_first else x, *last]

    def _run(self, x: Value, states: Sequence[Value]) -> Sequence[Value]:
        """Return the outputs of ``x`` [time, batch, features] and the last states."""
        last: list[list[Value]] = [[] for _ in states]
        for layer in range(self.layers):
            x = self.rate.drop(self.g, x) if layer else x
            outputs = self.layer(layer, x, states)
            x = self.joined(outputs[0])
            for states_of_layers, state in zip(last, outputs[1:], strict=True):
                states_of_layers.append(state)
        return [x, *(self.stacked(states_of_layers) for states_of_layers in last)]

    @property
    def is_projected(self) -> bool:
        """Whether each direction has one more parameter, ``weight_hr``."""
        directions = self.layers * (2 if self.bidirectional else 1)
        return len(self.params) == directions * (5 if self.has_biases else 3)

    def _projected(self, x: Value, states: Sequence[Value]) -> Sequence[Value]:
        """Return the same of an LSTM with ``proj_size``."""
        g, mask = self.g, None
        if self.lengths is not None:
            lengths = g.cast(self.lengths, INT64)
            steps = g.at(BOOL).op("Unsqueeze", step_mask(g, Packed(x, lengths)), [2])
            mask = replace(steps, dims=None if x.dims is None else (*x.dims[:2], 1))
        stack = self.params, self.has_biases, self.layers, self.bidirectional
        return ProjectedStack(g, *stack, mask).run(x, states)

    def layer(self, layer: int, x: Value, states: Sequence[Value]) -> Sequence[Value]:
        g, count = self.g, 2 if self.bidirectional else 1
        # Without lengths this becomes a layer such as ``nn.LSTM``, with its parameters.
        # With lengths, or if weights are computed (by weight norm), it is a call of a
        # function, which computes with the parameters of the stack.
        is_stored = all(value.name in g.out.constants for value in self.params)
        is_layer = self.lengths is None and is_stored
        w, r, b = self.weights(layer) if is_layer else self.computed(layer)
        first = [self.part(state, layer * count, count) for state in states]
        attrs: dict[str, Any] = {
            "hidden_size": self.hidden,
            "direction": "bidirectional" if self.bidirectional else None,
            "linear_before_reset": 1 if self.kind.op_type == "GRU" else None,
            "activations": (
                (self.kind.activation,) * count if self.kind.activation else None
            ),
        }
        operands = (x, w, r, b, self.lengths, *first)
        return g.many(self.kind.op_type, 1 + self.kind.states, *operands, **attrs)

    def part(self, state: Value, start: int, count: int) -> Value:
        """Return the states of one layer."""
        if self.layers == 1:
            return state
        g = self.g
        ends = (g.constant([start]), g.constant([start + count]))
        return g.op("Slice", state, *ends, g.constant([0]))

    def joined(self, y: Value) -> Value:
        """Join the directions of outputs ``[length, directions, batch, hidden]``."""
        g = self.g
        if not self.bidirectional:
            return g.op("Squeeze", y, g.constant([1]))
        moved = g.op("Transpose", y, perm=(0, 2, 1, 3))
        return g.op("Reshape", moved, g.constant([0, 0, -1]))

    def stacked(self, states: Sequence[Value]) -> Value:
        """Return the concatenated last states of all layers."""
        return states[0] if len(states) == 1 else self.g.op("Concat", *states, axis=0)

    def parameters(self, layer: int) -> list[Sequence[Value]]:
        """Return the parameters of one layer, by direction.

        Raises:
            UnsupportedModel: their number is not that of a plain layer.
        """
        count = 2 if self.bidirectional else 1
        each = 4 if self.has_biases else 2
        if len(self.params) != self.layers * count * each:
            raise UnsupportedModel(
                f"expected {self.layers * count * each} parameters of recurrent "
                f"layers, got {len(self.params)}"
            )
        starts = range(layer * count * each, (layer + 1) * count * each, each)
        return [self.params[start : start + each] for start in starts]

    @property
    def hidden(self) -> int | None:
        """The number of hidden features, None if it is unknown."""
        dims = self.params[1].dims
        return dims[1] if dims is not None and isinstance(dims[1], int) else None

    def weights(self, layer: int) -> tuple[Value, Value, Value | None]:
        """Return the weights of one layer in ONNX's layout, a row per direction."""
        rows = [
            [self.ordered(self.g.out.constants[value.name]) for value in row]
            for row in self.parameters(layer)
        ]
        w, r = (np.stack([row[i] for row in rows]) for i in (0, 1))
        stored = [self.g.constant(array, array.dtype) for array in (w, r)]
        if not self.has_biases:
            return stored[0], stored[1], None
        bias = np.stack([np.concatenate(row[2:]) for row in rows])
        return stored[0], stored[1], self.g.constant(bias, bias.dtype)

    def computed(self, layer: int) -> tuple[Value, Value, Value | None]:
        """Return the same, computed from the parameters at run time."""
        rows = [
            [self.reordered(value) for value in row] for row in self.parameters(layer)
        ]
        w, r = (self.by_direction([row[i] for row in rows]) for i in (0, 1))
        if not self.has_biases:
            return w, r, None
        biases = [[part for gates in row[2:] for part in gates] for row in rows]
        return w, r, self.by_direction(biases)

    def by_direction(self, rows: Sequence[Sequence[Value]]) -> Value:
        """Return the joined parts of each direction, stacked on axis 0."""
        g = self.g
        whole = [g.op("Unsqueeze", g.op("Concat", *row, axis=0), [0]) for row in rows]
        return whole[0] if len(whole) == 1 else g.op("Concat", *whole, axis=0)

    def reordered(self, value: Value) -> list[Value]:
        """Return the gates of ``value`` in ONNX's order; neighbors stay together."""
        g, count = self.g, len(self.kind.gates)
        if value.dims is None or not isinstance(value.dims[0], int):
            raise UnsupportedModel(
                "expected weights of fixed shape in a recurrent layer"
            )
        size = value.dims[0] // count
        spans: list[list[int]] = []
        for gate in self.kind.gates:
            if spans and spans[-1][1] == gate:
                spans[-1][1] = gate + 1
            else:
                spans.append([gate, gate + 1])
        if len(spans) == 1:
            return [value]
        return [g.op("Slice", value, [a * size], [b * size], [0]) for a, b in spans]

    def ordered(self, array: Array) -> Array:
        """Return the gates (rows) of ``array`` in ONNX's order."""
        parts = np.split(array, len(self.kind.gates))
        return np.concatenate([parts[gate] for gate in self.kind.gates])


def swap_time_and_batch(g: Builder, x: Value) -> Value:
    """Return ``x`` [a, b, c] with its first two axes exchanged."""
    dims = x.dims and (x.dims[1], x.dims[0], x.dims[2])
    return replace(g.op("Transpose", x, perm=(1, 0, 2)), dims=dims)


def step_mask(g: Builder, of: Packed) -> Value:
    """Return a mask of the steps that are no padding: bools [time, batch]."""
    time = g.at(INT64).op("Unsqueeze", multiples(g, g.extent(of.padded, 0)), [1])
    return g.at(BOOL).op("Less", time, of.lengths)


_RANK = 3


def cell(op_type: str, states: int, **options: str) -> None:
    """Register the rule of one step."""
    names = {"LSTMCell": "lstm", "GRUCell": "gru"}
    kind = names.get(op_type, f"rnn_{options.get('nonlinearity')}")

    def apply(
        g: Builder,
        input: Value,
        hx: Value | Sequence[Value],
        w_ih: Value,
        w_hh: Value,
        b_ih: Value | None = None,
        b_hh: Value | None = None,
    ) -> Value | Sequence[Value]:
        first = [hx] if isinstance(hx, Value) else hx
        operands = [input, *first, w_ih, w_hh, *(() if b_ih is None else (b_ih, b_hh))]
        attributes = {k: v for k, v in options.items() if v != "tanh"}
        results = g.many(op_type, states, *operands, domain="burn", **attributes)
        return results[0] if states == 1 else results

    rule(f"aten.{kind}_cell.default")(apply)


cell("LSTMCell", 2)
cell("GRUCell", 1)
cell("RNNCell", 1, nonlinearity="tanh")
cell("RNNCell", 1, nonlinearity="relu")
