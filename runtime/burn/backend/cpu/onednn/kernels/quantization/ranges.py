"""Dynamic quantization by generated kernels."""

from typing import Any

from burn.backend.cpu.blas import integers
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.memory import Array
from burn.ops.quantize import (
    quantization_range as quantization_range_op,
    quantize as quantize_op,
)


@quantization_range_op.on(Cpu)
def quantization_range(x: Array) -> tuple[Array, Array]:
    """Compute a range in parts."""
    return integers.quantization_range(x)


@quantize_op.on(Cpu)
def quantize(*operands: Any, **static: Any) -> Array:
    """Compute quantized numbers by one call."""
    return integers.quantize(*operands, **static)
