"""Single steps of recurrent layers in PyTorch's form, which passes recover."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from burn import ops
from burn_ir.dim import unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.recurrent import NAMES, check_parameters
from burn_ir.types import broadcast


class Cell:
    """Single steps of recurrent layers.

    The operands are the input ``[batch, input]``, the states ``[batch, hidden]``
    (all, or none for zeros), and the parameters.
    """

    onnx: ClassVar[str]
    states: ClassVar[int]

    def infer(self, x: Type, *operands: Type | None) -> tuple[Type, ...]:
        weights = [t for t in operands[self.states :] if t is not None]
        if len(weights) not in (2, 4):
            raise InvalidOperand(f"expected 2 or 4 parameters, got {len(weights)}")
        check_parameters(weights)
        if len({t is None for t in operands[: self.states]}) > 1:
            raise InvalidOperand("expected all of the states or none")
        dtype = same_dtype(x, *(t for t in operands if t is not None))
        if x.shape is not None and x.rank != 2:
            raise InvalidOperand(f"expected rank 2, got {x.name}")
        hidden = weights[1].dims[1]
        # One row of states may be broadcast over the batch, and vice versa.
        rows = Type(dtype, None if x.shape is None else (x.dims[0], 1))
        states = [t for t in operands[: self.states] if t is not None]
        shape = broadcast(rows, Type(dtype, (1, hidden)), *states)
        shape = (unnamed(), hidden) if shape is None else shape
        return tuple(Type(dtype, shape) for _ in range(self.states))

    def layer(self, x: Type, *operands: Type | None) -> Layer | None:
        weights = [t for t in operands[self.states :] if t is not None]
        if any(t.known is None for t in weights):
            return None
        begin = 1 + self.states
        positions = range(begin, begin + len(weights))
        state = (1, 2) if self.states == 2 else 1
        return Layer(
            self.onnx,
            (weights[0].dims[1], weights[1].dims[1]),
            self.options(len(weights) == 4),
            dict(zip(NAMES, positions, strict=False)),
            (0,) if operands[0] is None else (0, state),
        )

    def options(self, biased: bool) -> dict[str, Any]:
        """Return the constructor arguments that differ from PyTorch's defaults."""
        return {} if biased else {"bias": False}


@operator
class LSTMCell(Cell, Op, onnx="LSTMCell", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h``, ``c`` and the parameters; results h and c."""

    states = 2

    def lower(self, x: Value, h: Value, c: Value, *weights: Value) -> tuple[Value, ...]:
        c = _state(c, x, weights)
        gates = _product(x, weights, 0) + _product(_state(h, x, weights), weights, 1)
        i, f, g, o = ops.split(gates, (weights[1].shape[1],) * 4, 1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


@operator
class ProjectedLSTMCell(Op, onnx="ProjectedLSTMCell", versions=(1,), domain="burn"):
    """One step of an LSTM with ``proj_size``; results are h and c.

    The operands are ``x`` [batch, input], ``h`` [batch, projected], ``c`` [batch,
    hidden], the parameters ``w_ih``, ``w_hh`` and ``w_hr`` [projected, hidden], and
    two biases or none. There is no layer of such a step in PyTorch.
    """

    def infer(
        self,
        x: Type,
        h: Type,
        c: Type,
        w_ih: Type,
        w_hh: Type,
        w_hr: Type,
        *biases: Type,
    ) -> tuple[Type, Type]:
        check_parameters([w_ih, w_hh])
        check_parameters([w_hr, w_hr])
        if len(biases) not in (0, 2):
            raise InvalidOperand(f"expected no bias or 2, got {len(biases)}")
        dtype = same_dtype(x, h, c, w_ih, w_hh, w_hr, *biases)
        for state in (x, h, c):
            if state.shape is not None and state.rank != 2:
                raise InvalidOperand(f"expected rank 2, got {state.name}")
        ranked = next((t for t in (x, h, c) if t.shape is not None), None)
        batch = unnamed() if ranked is None else ranked.dims[0]
        projected, hidden = w_hr.dims
        return Type(dtype, (batch, projected)), Type(dtype, (batch, hidden))

    def lower(
        self, x: Value, h: Value, c: Value, *weights: Value
    ) -> tuple[Value, Value]:
        w_ih, w_hh, w_hr, *biases = weights
        b_ih, b_hh = biases or (None, None)
        gates = ops.linear(x, w_ih, b_ih) + ops.linear(h, w_hh, b_hh)
        i, f, g, o = ops.split(gates, (w_hr.shape[1],) * 4, 1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.linear(ops.sigmoid(o) * ops.tanh(c), w_hr), c


@operator
class GRUCell(Cell, Op, onnx="GRUCell", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h`` and the parameters; the result is h."""

    states = 1

    def lower(self, x: Value, h: Value, *weights: Value) -> tuple[Value, ...]:
        h, sizes = _state(h, x, weights), (weights[1].shape[1],) * 3
        r, z, n = ops.split(_product(x, weights, 0), sizes, 1)
        hr, hz, hn = ops.split(_product(h, weights, 1), sizes, 1)
        z = ops.sigmoid(z + hz)
        n = ops.tanh(n + ops.sigmoid(r + hr) * hn)
        return ((1.0 - z) * n + z * h,)


@operator
class RNNCell(Cell, Op, onnx="RNNCell", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h`` and the parameters; the result is h."""

    states = 1

    nonlinearity: Literal["tanh", "relu"] = "tanh"

    def lower(self, x: Value, h: Value, *weights: Value) -> tuple[Value, ...]:
        h = _state(h, x, weights)
        total = _product(x, weights, 0) + _product(h, weights, 1)
        return (ops.tanh(total) if self.nonlinearity == "tanh" else ops.relu(total),)

    def options(self, biased: bool) -> dict[str, Any]:
        shown = super().options(biased)
        is_tanh = self.nonlinearity == "tanh"
        return shown if is_tanh else {**shown, "nonlinearity": self.nonlinearity}


def _state(state: Value, x: Value, weights: tuple[Value, ...]) -> Value:
    """Return a state, or zeros if it is omitted."""
    if state is not None:
        return state
    return ops.zeros((x.shape[0], weights[1].shape[1]), dtype=x.dtype)


def _product(x: Value, weights: tuple[Value, ...], index: int) -> Value:
    """Return ``x`` times the weight at ``index``, plus its bias."""
    if len(weights) == 2:
        return ops.linear(x, weights[index])
    return ops.linear(x, weights[index], weights[2 + index])
