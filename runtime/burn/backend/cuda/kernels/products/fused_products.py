"""Matrix products with bias, residual and activation in cuBLASLt's epilogue."""

from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.epilogues import apply_after
from burn.backend.cuda.kernels.products.products import (
    are_multiplied,
    is_epilogue,
    linear,
    matmul,
    multiply,
)
from burn.backend.cuda.tuning import is_tuning
from burn.ops.fused import (
    After,
    linear_then as linear_then_op,
    matmul_then as matmul_then_op,
)
from burn.ops.support import Array

#: Activations by cuBLASLt's names.
_ACTIVATIONS = {"relu": "RELU", "gelu_tanh": "GELU"}


@linear_then_op.on(Cuda)
def linear_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
) -> Array:
    """Compute :func:`burn.ops.fused.linear_then` with the largest possible epilogue."""
    shape = (*x.shape[:-1], weight.shape[0])
    rest = after
    out = None
    is_layer = weight.ndim == 2 and x.shape[-1:] == (weight.shape[1],)
    if is_layer and are_multiplied(x, weight) and _can_add_bias(bias, weight):
        addend = _addend(residual, shape, x) if after[0] == ("add",) else None
        rest = after[addend is not None :]
        operands = (x.reshape(-1, x.shape[-1]), weight.T, bias, addend)
        activation = _activation(rest, x)
        if activation != "RELU" or is_tuning(x.device.id):  # else NaN may be lost
            out = multiply(*operands, activation=activation)
        if out is None:
            activation = ""
            out = multiply(*operands)
        rest = rest[bool(activation) :]
    if out is None:
        out, rest = linear(x, weight, bias), after
    return apply_after(out.reshape(shape), residual, rest)


def _activation(after: After, x: Array) -> str:
    """Return cuBLASLt's name of the first operation, "" if it is no activation of its.

    Its GELU is off by up to 5e-6, less than products in TensorFloat-32 are.
    """
    name = _ACTIVATIONS.get(after[0][0], "") if after else ""
    is_exact = x.dtype == np.float32 and not Cuda(x.device.id).tf32
    return "" if name == "GELU" and is_exact else name


def _can_add_bias(bias: Array | None, weight: Array) -> bool:
    return bias is None or is_epilogue(bias, weight)


def _addend(residual: Any, shape: tuple[int, ...], x: Array) -> Array | None:
    """Return ``residual`` as rows for cuBLASLt, None if it cannot add them."""
    if residual is None or residual.shape != shape or residual.dtype != x.dtype:
        return None
    if not residual.flags.c_contiguous or residual.data.ptr % 16:
        return None
    return residual.reshape(-1, shape[-1])


@matmul_then_op.on(Cuda)
def matmul_then(
    x: Array,
    y: Array,
    bias: None = None,
    residual: Array | None = None,
    *,
    after: After,
) -> Array:
    """Compute :func:`burn.ops.fused.matmul_then`: a product, then its epilogue."""
    return apply_after(matmul(x, y), residual, after)
