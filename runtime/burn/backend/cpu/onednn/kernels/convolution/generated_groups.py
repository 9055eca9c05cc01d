"""Grouped convolutions as generated kernels, where oneDNN has no fast code for them."""

from typing import Any

from burn.backend.cpu.blas.generated_convolution import is_generated
from burn.backend.cpu.onednn.binding.capture import may_round, noting
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.binding.operands import are_float32

#: The implementations that take longer for groups of few channels.
_SLOW = ("jit:avx2", "x64:gemm:jit")


def has_faster_kernel(
    implementation: str, x: Array, weight: Array, bias: Array | None, groups: int
) -> bool:
    """Return whether a plan generates a kernel for a convolution in ``groups``."""
    notes: Any = noting()
    if notes is None or groups == 1 or implementation not in _SLOW:
        return False
    if not are_float32(x, weight, bias) or not may_round(weight) or weight.ndim > 4:
        return False
    return is_generated(notes, weight, bias)
