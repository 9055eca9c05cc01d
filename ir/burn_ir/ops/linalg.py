"""Functions of square matrices."""

from __future__ import annotations

from burn import ops
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.decomposition import expect_square


@operator
class Det(Op, onnx="Det", versions=(11, 22)):
    def infer(self, x: Type) -> Type:
        if expect_square(x).shape is None:
            return x.forget()
        return x.with_shape(x.dims[:-2])

    def lower(self, x: Value) -> Value:
        return ops.det(x)
