"""Recurrent layers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Literal

from burn import ops
from burn.ops.recurrence import ACTIVATION_NAMES
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.support import present_operands
from burn_ir.upgrade import Draft

Direction = Literal["forward", "reverse", "bidirectional"]
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


class Recurrent:
    """Recurrent layers; subclasses declare the gates and activations."""

    activations: tuple[str, ...] | None
    direction: Direction
    hidden_size: int | None
    layout: Literal[0, 1]
    #: The number of activation functions per direction.
    functions: ClassVar[int]

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            expected = ", ".join(DIRECTIONS)
            raise InvalidOperand(
                f"expected direction {expected}, got {self.direction!r}"
            )
        names = self.activations or ()
        if wrong := [n for n in names if n.lower() not in ACTIVATION_NAMES]:
            expected = ", ".join(sorted(ACTIVATION_NAMES))
            raise InvalidOperand(f"expected activations {expected}, got {wrong[0]!r}")
        if len(names) not in (0, self.functions, 2 * self.functions):
            raise InvalidOperand(
                f"expected {self.functions} activations for each direction, "
                f"got {len(names)}"
            )

    def types(self, x: Type, w: Type, r: Type, states: int) -> tuple[Type, ...]:
        """Return the types of all outputs and of the final states."""
        for operand in (x, w, r):
            if operand.shape is not None and operand.rank != 3:
                raise InvalidOperand(f"expected rank 3, got {operand.name}")
        count = DIRECTIONS[self.direction]
        if w.shape is not None and isinstance(w.dims[0], int) and w.dims[0] != count:
            raise InvalidOperand(
                f"expected weights of {count} directions, got {w.name}"
            )
        hidden: Dim = unnamed() if r.shape is None else r.dims[2]
        if self.hidden_size is not None:
            if isinstance(hidden, int) and hidden != self.hidden_size:
                raise InvalidOperand(
                    f"expected hidden_size {hidden}, got {self.hidden_size}"
                )
            hidden = self.hidden_size
        first, second = (unnamed(), unnamed()) if x.shape is None else x.dims[:2]
        every: tuple[Dim, ...]
        last: tuple[Dim, ...]
        if self.layout:
            every, last = (first, second, count, hidden), (first, count, hidden)
        else:
            every, last = (first, count, second, hidden), (count, second, hidden)
        return x.with_shape(every), *(x.with_shape(last) for _ in range(states))

    def options(self) -> dict[str, Any]:
        """Return the non-default attributes as the primitives' keyword arguments."""
        options = {}
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if value != f.default and f.name != "hidden_size":
                options[f.name] = value
        for flag in ("input_forget", "linear_before_reset"):
            if flag in options:
                options[flag] = bool(options[flag])
        return options


@operator
class LSTM(Recurrent, Op, onnx="LSTM", versions=(1, 7, 14, 22)):
    activation_alpha: tuple[float, ...] | None = None
    activation_beta: tuple[float, ...] | None = None
    activations: tuple[str, ...] | None = None
    clip: float | None = None
    direction: Direction = "forward"
    hidden_size: int | None = None
    input_forget: Literal[0, 1] = 0
    layout: Literal[0, 1] = 0
    functions: ClassVar[int] = 3

    def infer(self, x: Type, w: Type, r: Type, *_: Type | None) -> tuple[Type, ...]:
        return self.types(x, w, r, 2)

    def lower(
        self,
        x: Value,
        w: Value,
        r: Value,
        b: Value = None,
        sequence_lens: Value = None,
        initial_h: Value = None,
        initial_c: Value = None,
        p: Value = None,
    ) -> tuple[Value, ...]:
        operands = present_operands(x, w, r, b, initial_h, initial_c, sequence_lens, p)
        return ops.lstm(*operands, **self.options())


@operator
class GRU(Recurrent, Op, onnx="GRU", versions=(1, 3, 7, 14, 22)):
    activation_alpha: tuple[float, ...] | None = None
    activation_beta: tuple[float, ...] | None = None
    activations: tuple[str, ...] | None = None
    clip: float | None = None
    direction: Direction = "forward"
    hidden_size: int | None = None
    layout: Literal[0, 1] = 0
    linear_before_reset: Literal[0, 1] = 0
    functions: ClassVar[int] = 2

    def infer(self, x: Type, w: Type, r: Type, *_: Type | None) -> tuple[Type, ...]:
        return self.types(x, w, r, 1)

    def lower(
        self,
        x: Value,
        w: Value,
        r: Value,
        b: Value = None,
        sequence_lens: Value = None,
        initial_h: Value = None,
    ) -> tuple[Value, ...]:
        operands = present_operands(x, w, r, b, initial_h, sequence_lens)
        return ops.gru(*operands, **self.options())


@operator
class RNN(Recurrent, Op, onnx="RNN", versions=(1, 7, 14, 22)):
    activation_alpha: tuple[float, ...] | None = None
    activation_beta: tuple[float, ...] | None = None
    activations: tuple[str, ...] = ("Tanh", "Tanh")
    clip: float | None = None
    direction: Direction = "forward"
    hidden_size: int | None = None
    layout: Literal[0, 1] = 0
    functions: ClassVar[int] = 1

    def infer(self, x: Type, w: Type, r: Type, *_: Type | None) -> tuple[Type, ...]:
        return self.types(x, w, r, 1)

    def lower(
        self,
        x: Value,
        w: Value,
        r: Value,
        b: Value = None,
        sequence_lens: Value = None,
        initial_h: Value = None,
    ) -> tuple[Value, ...]:
        operands = present_operands(x, w, r, b, initial_h, sequence_lens)
        return ops.rnn(*operands, **self.options())


@LSTM.upgrade(1)
@GRU.upgrade(1, 3)
@RNN.upgrade(1)
def output_sequence(draft: Draft) -> Draft:
    """Upgrade: before 7, an attribute requested all outputs."""
    return draft.with_attrs("output_sequence")
