"""onnxruntime's recurrent layer with quantized weights."""

from __future__ import annotations

from typing import Literal

from burn import ops
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.microsoft.quantize import DOMAIN, expect_octets
from burn_ir.ops.rnn import Direction, Recurrent
from burn_ir.ops.support import present_operands


@operator
class DynamicQuantizeLSTM(
    Recurrent, Op, onnx="DynamicQuantizeLSTM", domain=DOMAIN, versions=(1,)
):
    activation_alpha: tuple[float, ...] | None = None
    activation_beta: tuple[float, ...] | None = None
    activations: tuple[str, ...] | None = None
    clip: float | None = None
    direction: Direction = "forward"
    hidden_size: int | None = None
    input_forget: Literal[0, 1] = 0

    layout = 0
    functions = 3

    def infer(
        self, x: Type, w: Type, r: Type, *others: Type | None
    ) -> tuple[Type, ...]:
        expect_octets(w, others[6])
        expect_octets(r, others[8])
        return self.types(x, _onnx_weight_type(w), _onnx_weight_type(r), 2)

    def lower(self, x: Value, w: Value, r: Value, *others: Value) -> tuple[Value, ...]:
        b, lengths, h0, c0, peephole, w_scale, w_shift, r_scale, r_shift = others
        weights = (w, w_scale, w_shift, r, r_scale, r_shift)
        rest = present_operands(b, h0, c0, lengths, peephole)
        return ops.dynamic_quantized_lstm(x, *weights, *rest, **self.options())


def _onnx_weight_type(x: Type) -> Type:
    """Return the type of weights in the layout of ONNX's layers."""
    if x.shape is None or len(x.shape) != 3:
        return x
    return x.with_shape((x.shape[0], x.shape[2], x.shape[1]))
