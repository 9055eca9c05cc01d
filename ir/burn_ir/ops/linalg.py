"""Functions of square matrices."""

from __future__ import annotations

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.functions import expect_float


@operator
class Det(Op, onnx="Det", versions=(11, 22)):
    def infer(self, x: Type) -> Type:
        expect_float(x)
        if x.shape is None:
            return x.forget()
        if x.rank < 2:
            raise InvalidOperand(f"expected square matrices, got {x.name}")
        rows, columns = x.shape[-2:]
        if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
            raise InvalidOperand(f"expected square matrices, got {x.name}")
        return x.with_shape(x.shape[:-2])

    def lower(self, x: Value) -> Value:
        return ops.det(x)
