"""Products of rows and packed weights by the code of pointwise convolutions.

Without AVX-512 oneDNN's matrix products neither pack weights nor choose blocks by the
number of rows. Measured on an AMD EPYC with AVX2 and one thread, code for pointwise
convolutions takes 0.29 to 1.0 of their time for 20 products of 2 to 3136 rows.
"""

from typing import NamedTuple

from burn.backend.cpu.onednn.binding.api import (
    BIAS,
    CONVOLUTION,
    DST,
    INFERENCE,
    SRC,
    WEIGHTS,
    WEIGHTS_MD,
    Api,
    dims,
)
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    any_layout,
    channels_last,
    of_array,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import Description, Operands, described
from burn.backend.cpu.onednn.kernels.post_ops import After, addend_index, post_ops

#: The implementations of matrix products that are replaced, and of pointwise
#: convolutions that replace them.
_SLOW, _FAST = "gemm", "jit_1x1:avx2"


class PointwiseProduct(NamedTuple):
    """The description of a convolution, its operands, and that of unpacked weights."""

    description: Description
    operands: Operands
    weights: Handle


def faster_product(
    api: Api,
    implementation: str,
    given: tuple[Array, Array, Array | None],
    after: After,
    residual: Array | None,
    is_copied: bool,
) -> PointwiseProduct | None:
    """Return ``x @ y + bias`` as a convolution of one image with a column for each row.

    None if ``implementation`` of the matrix product is as fast, and for operands that
    convolutions do not support. ``x`` may be a row-major copy. ``residual`` is None if
    it is the previous content of the result.
    """
    x, y, bias = given
    if not (implementation.startswith(_SLOW) and x.ndim == y.ndim == 2):
        return None
    (rows, width), outputs = x.shape, y.shape[1]
    if rows == 1 or x.dtype != FLOAT32 or not (is_copied or x.flags.c_contiguous):
        return None
    source, target = _image(api, rows, width), _image(api, rows, outputs)
    addend = None if residual is None else _image(api, len(residual), outputs)
    shift = None if bias is None else of_array(api, bias)
    one, none = dims((1,)), dims((0,))
    description = described(
        *(api, "convolution_forward", api.engine, INFERENCE, CONVOLUTION),
        *(source, any_layout(api, (outputs, width, 1)), shift, target),
        *(one, none, none, none),
        faster=lambda _: _FAST,
        post=post_ops(api, after, addend),
    )
    if description is None or description.implementation != _FAST:
        return None
    operands: Operands = [(SRC, source), (WEIGHTS, description.descriptor(WEIGHTS_MD))]
    operands.append((DST, target))
    if shift is not None:
        operands.append((BIAS, shift))
    if addend is not None:
        operands.append((addend_index(after), addend))
    return PointwiseProduct(description, operands, _unpacked(api, y))


def _image(api: Api, rows: int, channels: int) -> Handle:
    shape = (1, channels, rows)
    return strided(api, shape, channels_last(shape))


def _unpacked(api: Api, y: Array) -> Handle:
    """Return the descriptor of ``y`` [K, N] as weights [N, K, 1]."""
    inner, outer = (step // FLOAT32.itemsize for step in y.strides)
    return strided(api, (*y.shape[::-1], 1), (outer, inner, 1))
