"""Single steps of recurrent layers as PyTorch has them, which passes recover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.recurrent import NAMES


class Cell:
    """What the cells have in common: operands are the input ``[batch, input]``, the
    states ``[batch, hidden]``, and the parameters.
    """

    onnx: ClassVar[str]
    states: ClassVar[int]

    def infer(self, x: Type, *operands: Type) -> tuple[Type, ...]:
        weights = operands[self.states :]
        if len(weights) not in (2, 4):
            raise InvalidOperand(f"expected 2 or 4 parameters, got {len(weights)}")
        dtype = same_dtype(x, *operands)
        shape = None if x.shape is None else (x.dims[0], weights[1].dims[1])
        return tuple(Type(dtype, shape) for _ in range(self.states))

    def layer(self, x: Type, *operands: Type) -> Layer | None:
        weights = operands[self.states :]
        if any(t.known is None for t in weights):
            return None
        begin = 1 + self.states
        places = range(begin, begin + len(weights))
        options: dict[str, Any] = {} if len(weights) == 4 else {"bias": False}
        return Layer(
            self.onnx,
            (weights[0].dims[1], weights[1].dims[1]),
            options,
            dict(zip(NAMES, places, strict=False)),
            (0, (1, 2)) if self.states == 2 else (0, 1),
        )


@dataclass(frozen=True)
class LSTMCell(Cell, Op, onnx="LSTMCell", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h``, ``c`` and the parameters; results h and c."""

    states = 2

    def lower(self, x: Value, h: Value, c: Value, *weights: Value) -> tuple[Value, ...]:
        gates = _product(x, weights, 0) + _product(h, weights, 1)
        i, f, g, o = ops.split(gates, (weights[1].shape[1],) * 4, 1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


@dataclass(frozen=True)
class GRUCell(Cell, Op, onnx="GRUCell", versions=(1,), domain="burn"):
    """Operands are ``x``, ``h`` and the parameters; the result is h."""

    states = 1

    def lower(self, x: Value, h: Value, *weights: Value) -> tuple[Value, ...]:
        sizes = (weights[1].shape[1],) * 3
        r, z, n = ops.split(_product(x, weights, 0), sizes, 1)
        hr, hz, hn = ops.split(_product(h, weights, 1), sizes, 1)
        z = ops.sigmoid(z + hz)
        n = ops.tanh(n + ops.sigmoid(r + hr) * hn)
        return ((1.0 - z) * n + z * h,)


def _product(x: Value, weights: tuple[Value, ...], place: int) -> Value:
    """``x`` through the weight at ``place`` and the bias that goes with it."""
    if len(weights) == 2:
        return ops.linear(x, weights[place])
    return ops.linear(x, weights[place], weights[2 + place])
