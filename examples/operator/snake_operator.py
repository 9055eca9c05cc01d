"""Declares ``com.example.Snake``: ``x + sin(a x)^2 / a``, for periodic functions."""

from burn import ops
from burn_ir import InvalidOperand, Op, Type, Value, operator


@operator
class Snake(Op, onnx="Snake", domain="com.example", versions=(1,)):
    """An activation that is monotonous and periodic; ``a`` is its frequency."""

    a: float = 1.0

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "f":
            raise InvalidOperand(f"expected a float, got {x.name}")
        return x.forget()

    def lower(self, x: Value) -> Value:
        wave = ops.sin(x * self.a)
        return x + wave * wave / self.a
