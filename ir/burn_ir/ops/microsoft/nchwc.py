"""The operator of ``com.microsoft.nchwc`` that remains on plain images."""

from __future__ import annotations

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator


@operator
class ReorderInput(
    Op, onnx="ReorderInput", domain="com.microsoft.nchwc", versions=(1,)
):
    """An image [N, C, *size] with channels zero-padded to whole blocks."""

    block: int = 16
    channels_last: int = 0

    def infer(self, x: Type) -> Type:
        if x.shape is None or x.rank < 3 or not isinstance(x.shape[1], int):
            raise InvalidOperand(f"expected a known number of channels, got {x.name}")
        if self.channels_last:
            raise InvalidOperand("expected channels_last of 0, got 1")
        full = -(-x.shape[1] // self.block) * self.block
        return x.with_shape((x.shape[0], full, *x.shape[2:]))

    def lower(self, x: Value) -> Value:
        padding = -x.shape[1] % self.block
        if not padding:
            return x
        rank = len(x.shape)
        pads = [0] * (2 * rank)
        pads[rank + 1] = padding
        return ops.pad(x, tuple(pads))
