"""Products of a few rows, limited by the memory bandwidth of the weights.

The norm before the product, a gate, and the epilogue are part of the kernel.
"""

from functools import partial
from math import prod
from typing import Any

from burn.backend.cuda.choices import choice_of
from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES, has_residual
from burn.backend.cuda.kernels.products import simt_rows, tensor_core_rows
from burn.backend.cuda.kernels.products.fused_products import linear_then
from burn.backend.cuda.kernels.products.products import linear
from burn.backend.cuda.kernels.products.row_kernels import (
    PROCESSORS,
    WARPS,
    Form,
    run,
)
from burn.backend.cuda.tuning import is_tuning, quickest
from burn.ops.activation import silu
from burn.ops.decoding import Norm, row_linear as row_linear_op
from burn.ops.fused import After
from burn.ops.layer_norm import layer_norm, rms_norm
from burn.ops.support import Array

#: Blocks of each multiprocessor of the kernels on CUDA cores, for one row and for more.
#: The most bytes of the rows of a block.
_BLOCKS, _SHARED = (4, 2), 96 << 10
#: The same for kernels on tensor cores; the quicker number is taken.
_TENSOR_CORE_BLOCKS = (1, 2)
#: The most rows of the kernel.
ROWS = 8


Operands = tuple[Array | None, ...]


@row_linear_op.on(Cuda)
def row_linear(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    norm_weight: Array | None = None,
    norm_bias: Array | None = None,
    gate: Array | None = None,
    *,
    norm: Norm = "",
    epsilon: float = 1e-5,
    after: After = (),
) -> Array:
    """Compute :func:`burn.ops.decoding.row_linear` by one kernel, or by cuBLASLt.

    In plans the faster one is measured.
    """
    operands = (x, weight, bias, residual, norm_weight, norm_bias, gate)
    options: Any = {"norm": norm, "epsilon": epsilon, "after": after}
    if not _are_supported(operands, norm, after):
        return _by_parts(*operands, **options)
    if not is_tuning(x.device.id):
        return _by_kernel(*operands, **options)
    variants = _variants(_form(operands, norm, after), x.device)

    def choose() -> int:
        return quickest(
            range(len(variants)),
            lambda number: variants[number](*operands, **options),
            x.device.id,
            overlaps=True,
        )

    key = (
        *("row_linear", x.shape, x.dtype, weight.shape, weight.strides),
        *(bias is None, gate is None, norm, after),
    )
    number = choice_of(x.device.id, key, len(variants), choose)
    return variants[number](*operands, **options)


def _variants(form: Form, device: Any) -> list[Any]:
    """Return the kernels with several launch configurations, and cuBLASLt."""
    processors = device.attributes[PROCESSORS]
    least = simt_rows.warps_of(form)
    simt = [warps for warps in (least, 2 * least, 4 * least) if warps <= WARPS]
    tensor = tensor_core_rows.splits_of(form)
    if int(device.compute_capability) < tensor_core_rows.CAPABILITY:
        tensor = ()
    variants: list[Any] = []
    for kernels, splits, most in (
        (simt_rows, simt, (_BLOCKS[form.rows > 1],)),
        (tensor_core_rows, tensor, _TENSOR_CORE_BLOCKS),
    ):
        for split in splits:
            columns = kernels.columns_of(form, split) * processors
            for blocks in most:
                variants.append(
                    partial(_by_kernel, kernels=kernels, split=split, blocks=blocks)
                )
                if form.columns <= columns * blocks:
                    break  # there is nothing for more
    return [*variants, _by_parts]


def _are_supported(operands: Operands, norm: Norm, after: After) -> bool:
    """Return whether the kernels support the operands."""
    x, weight, bias, residual = operands[:4]
    assert x is not None and weight is not None
    form = _form(operands, norm, after)
    if x.dtype not in TYPES or not 0 < form.rows <= ROWS or x.shape[-1] != form.inner:
        return False
    if not simt_rows.warps_of(form):
        return False
    if norm and form.rows * form.inner * x.itemsize > _SHARED:
        return False
    present = [array for array in operands if array is not None]
    if any(array.dtype != x.dtype for array in present):
        return False
    shape = (*x.shape[:-1], form.columns)
    if has_residual(after) and (residual is None or residual.shape != shape):
        return False
    return bias is None or bias.shape == (form.columns,)


def _form(operands: Operands, norm: Norm, after: After) -> Form:
    x, weight, gate = operands[0], operands[1], operands[-1]
    assert x is not None and weight is not None
    rows, (columns, inner) = prod(x.shape[:-1]), weight.shape
    return Form(x.dtype, rows, columns, inner, norm, gate is not None, after)


def _by_kernel(
    *operands: Array | None,
    norm: Norm = "",
    epsilon: float = 1e-5,
    after: After = (),
    kernels: Any = simt_rows,
    split: int = 0,
    blocks: int = _BLOCKS[1],
) -> Array:
    form = _form(operands, norm, after)
    kernel = kernels.kernel(form, split or simt_rows.warps_of(form), blocks)
    return run(kernel, operands, form, epsilon, blocks)


def _by_parts(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    norm_weight: Array | None = None,
    norm_bias: Array | None = None,
    gate: Array | None = None,
    *,
    norm: Norm = "",
    epsilon: float = 1e-5,
    after: After = (),
) -> Array:
    """Return the result by separate norm, cuBLASLt product and epilogue."""
    on = Cuda(x.device.id)
    if norm == "layer":
        x = layer_norm.kernel_for(on)(x, norm_weight, norm_bias, epsilon=epsilon)
    elif norm == "rms":
        x = rms_norm.kernel_for(on)(x, norm_weight, epsilon=epsilon)
    if gate is not None:
        out = linear(x, weight, bias)
        out *= silu.kernel_for(on)(linear(x, gate))
        return out
    if after:
        return linear_then(x, weight, bias, residual, after=after)
    return linear(x, weight, bias)
