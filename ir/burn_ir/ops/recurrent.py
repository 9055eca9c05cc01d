"""Recurrent layers in PyTorch's form, which passes recover from ONNX's."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from burn import ops
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.options import shortest

#: The parameters of one layer in one direction, in order.
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@operator
class Stacked:
    """Stacked recurrent layers.

    The operands are the input, the initial states (all or none), and the parameters
    of each layer, those of the forward direction first.
    """

    onnx: ClassVar[str]
    #: The number of states, and the indices of PyTorch's gates in ONNX's order.
    states: ClassVar[int]
    gates: ClassVar[tuple[int, ...]]

    num_layers: int = 1
    batch_first: bool = False
    bidirectional: bool = False
    dropout: float = 0.0

    @property
    def directions(self) -> int:
        """The number of directions."""
        return 2 if self.bidirectional else 1

    def paths(self, count: int) -> list[str]:
        """Return the names of ``count`` parameters:

        ``weight_ih_l0``, ``weight_hh_l0``, ...
        """
        ways = ("", "_reverse")[: self.directions]
        each = count // (self.num_layers * self.directions)
        return [
            f"{name}_l{layer}{way}"
            for layer in range(self.num_layers)
            for way in ways
            for name in NAMES[:each]
        ]

    def infer(self, x: Type, *operands: Type | None) -> tuple[Type, ...]:
        weights = [t for t in operands[self.states :] if t is not None]
        if len({t is None for t in operands[: self.states]}) > 1:
            raise InvalidOperand("expected all of the first states or none")
        each, rest = divmod(len(weights), max(self.num_layers, 1) * self.directions)
        if rest or each not in (2, 4):
            raise InvalidOperand(
                f"expected 2 or 4 parameters for each layer, got {len(weights)} in all"
            )
        check_parameters(weights)
        dtype = same_dtype(x, *weights)
        if x.shape is not None and x.rank != 3:
            raise InvalidOperand(f"expected rank 3, got {x.name}")
        hidden = weights[1].dims[1]
        first, second = (unnamed(), unnamed()) if x.shape is None else x.dims[:2]
        width: Dim = hidden * self.directions
        batch = first if self.batch_first else second
        last = (self.num_layers * self.directions, batch, hidden)
        return (
            Type(dtype, (first, second, width)),
            *(Type(dtype, last) for _ in range(self.states)),
        )

    def lower(self, x: Value, *operands: Value) -> tuple[Value, ...]:
        states, weights = operands[: self.states], list(operands[self.states :])
        count = self.directions
        each = len(weights) // self.num_layers
        x = x.transpose(0, 1) if self.batch_first else x
        ends = []
        for layer in range(self.num_layers):
            packed = self.packed(weights[layer * each : (layer + 1) * each])
            rows = slice(layer * count, (layer + 1) * count)
            present = [s for s in states if s is not None]
            first = present if self.num_layers == 1 else [s[rows] for s in present]
            y, *last = self.run(x, *packed, *first)
            x = y.transpose(1, 2).flatten(2) if count == 2 else y.squeeze(1)
            ends.append(last)
        ends_by_state = [list(parts) for parts in zip(*ends, strict=True)]
        joined = (
            ops.concat(parts) if len(parts) > 1 else parts[0] for parts in ends_by_state
        )
        return (x.transpose(0, 1) if self.batch_first else x, *joined)

    def packed(self, weights: list[Value]) -> list[Value]:
        """Return W, R and B of one layer in ONNX's layout, from its parameters."""
        each = len(weights) // self.directions
        hidden = weights[1].shape[1]
        gated = [self.gated(value, hidden) for value in weights]
        ways = [gated[way * each : (way + 1) * each] for way in range(self.directions)]
        matrices = [ops.stack([way[index] for way in ways]) for index in range(2)]
        if each == 2:
            return [*matrices, None]
        return [*matrices, ops.stack([ops.concat(way[2:]) for way in ways])]

    def gated(self, value: Value, hidden: int) -> Value:
        """Return a parameter with its gates in ONNX's order."""
        if len(self.gates) == 1:
            return value
        pieces = ops.split(value, (hidden,) * len(self.gates), 0)
        return ops.concat([pieces[gate] for gate in self.gates])

    def run(self, x: Value, *operands: Value) -> tuple[Value, ...]:
        """Run one layer in ONNX's layout."""
        raise NotImplementedError

    def direction(self) -> dict[str, Any]:
        """Return the direction option of the primitives."""
        return {"direction": "bidirectional"} if self.bidirectional else {}

    def layer(self, x: Type, *operands: Type | None) -> Layer | None:
        weights = [t for t in operands[self.states :] if t is not None]
        if any(t.known is None for t in weights):
            return None
        begin = 1 + self.states
        positions = range(begin, begin + len(weights))
        pair = self.states == 2
        state = (1, 2) if pair else 1
        return Layer(
            self.onnx,
            (weights[0].dims[1], weights[1].dims[1]),
            self.options(len(weights)),
            dict(zip(self.paths(len(weights)), positions, strict=True)),
            (0,) if operands[0] is None else (0, state),
            results=(0, (1, 2)) if pair else None,
        )

    def options(self, count: int) -> dict[str, Any]:
        """Return the constructor arguments that differ from PyTorch's, in its order."""
        shown: dict[str, Any] = {}
        if self.num_layers != 1:
            shown["num_layers"] = self.num_layers
        if count == 2 * self.num_layers * self.directions:
            shown["bias"] = False
        if self.batch_first:
            shown["batch_first"] = True
        if self.dropout and self.num_layers > 1:
            shown["dropout"] = shortest(self.dropout)
        if self.bidirectional:
            shown["bidirectional"] = True
        return shown


@operator
class LSTM(Stacked, Op, onnx="LSTM", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h0``, ``c0`` and parameters; results all and the last."""

    states = 2
    gates = (0, 3, 1, 2)

    def run(self, x: Value, *operands: Value) -> tuple[Value, ...]:
        result: tuple[Value, ...] = ops.lstm(x, *_given(operands), **self.direction())
        return result


@operator
class GRU(Stacked, Op, onnx="GRU", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h0`` and parameters; results all outputs and the last."""

    states = 1
    gates = (1, 0, 2)

    def run(self, x: Value, *operands: Value) -> tuple[Value, ...]:
        options = {**self.direction(), "linear_before_reset": True}
        result: tuple[Value, ...] = ops.gru(x, *_given(operands), **options)
        return result


@operator
class RNN(Stacked, Op, onnx="RNN", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h0`` and parameters; results all outputs and the last."""

    states = 1
    gates = (0,)

    nonlinearity: Literal["tanh", "relu"] = "tanh"

    def run(self, x: Value, *operands: Value) -> tuple[Value, ...]:
        options = self.direction()
        if self.nonlinearity != "tanh":
            options["activations"] = ("Relu",) * self.directions
        result: tuple[Value, ...] = ops.rnn(x, *_given(operands), **options)
        return result

    def options(self, count: int) -> dict[str, Any]:
        shown = super().options(count)
        if self.nonlinearity == "tanh":
            return shown
        layers = {k: v for k, v in shown.items() if k == "num_layers"}
        return {**layers, "nonlinearity": self.nonlinearity, **shown}


def check_parameters(weights: list[Type]) -> None:
    """Check that the first two parameters are matrices.

    Raises:
        InvalidOperand: they are not.
    """
    if any(t.shape is None or t.rank != 2 for t in weights[:2]):
        shown = " and ".join(t.name for t in weights[:2])
        raise InvalidOperand(f"expected matrices, got {shown}")


def _given(operands: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operands without trailing missing ones."""
    count = len(operands)
    while operands[count - 1] is None:
        count -= 1
    return operands[:count]
