"""Operators that onnxruntime's optimizer writes for other layouts of images."""

from __future__ import annotations

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.microsoft.activation import DOMAIN
from burn_ir.ops.pool import MaxPool, Pooling


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


@operator
class NhwcMaxPool(Pooling, Op, onnx="NhwcMaxPool", domain=DOMAIN, versions=(1,)):
    """The largest elements of windows of an image [N, *size, C]."""

    def infer(self, x: Type) -> Type:
        if x.shape is None:
            return self._pool().pooled(x)
        if x.rank < 3:
            raise InvalidOperand(f"expected rank 3 or more, got {x.name}")
        first = x.with_shape((x.shape[0], x.shape[-1], *x.shape[1:-1]))
        dims = self._pool().pooled(first).dims
        return x.with_shape((dims[0], *dims[2:], dims[1]))

    def lower(self, x: Value) -> Value:
        rank = len(self.kernel_shape) + 2
        first = x.permute(0, rank - 1, *range(1, rank - 1))
        return self._pool().lower(first).permute(0, *range(2, rank), 1)

    def _pool(self) -> MaxPool:
        return MaxPool(**self.attrs())
