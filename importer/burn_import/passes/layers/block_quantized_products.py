"""Products with a matrix that is dequantized by blocks, as ``MatMulNBits``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import dtypes
from burn_import.provenance.trainable import is_listed_parameter
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import without_trailing
from burn_ir.graph import Node
from burn_ir.ops.microsoft.blocks import FLOATS, MatMulNBits
from burn_ir.ops.quantize import DequantizeLinear
from burn_ir.types import Array

#: The bits of the integers, and what makes signed ones unsigned.
INTEGERS = {
    dtypes.int4: (4, 8),
    dtypes.uint4: (4, 0),
    dtypes.int8: (8, 128),
    dtypes.uint8: (8, 0),
}


def block_quantized_product(
    flow: Dataflow, node: Node, bias: str | None, is_straight: bool
) -> Node | None:
    """Return ``node`` as ``MatMulNBits`` if its matrix is dequantized by blocks.

    The blocks lie along the inner axis: the last one if the matrix ``is_straight``,
    [out, in], else the first one. Values are bit-identical.
    """
    source = flow.made_by(node.inputs[1], "DequantizeLinear")
    if source is None or not _has_inner_blocks(flow, source, is_straight):
        return None
    names = (*source.inputs, None)[:3]
    weight, scale, zeros = (flow.stored(name) for name in names)
    x = flow.graph.type(node.inputs[0])
    if weight is None or scale is None or (zeros is None) != (names[2] is None):
        return None
    if x is None or x.dtype != scale.dtype or x.dtype not in FLOATS:
        return None
    bits, offset = INTEGERS.get(weight.dtype, (0, 0))
    size = source.op.attrs()["block_size"]
    if weight.ndim != 2 or not bits or size * bits % 8:
        return None
    outer, inner = weight.shape if is_straight else weight.shape[::-1]
    if bias is not None and flow.extents(bias) != (outer,):
        return None
    if zeros is None and not offset:
        zeros = np.zeros(scale.shape, weight.dtype)
    operands = _stored_operands(flow, source, is_straight, zeros)
    inputs = without_trailing((node.inputs[0], *operands, None, bias))
    op = MatMulNBits(K=inner, N=outer, block_size=size, bits=bits)
    return replace(node, op=op, inputs=inputs)


def _has_inner_blocks(flow: Dataflow, source: Node, is_straight: bool) -> bool:
    """Return whether ``source`` has fixed scales for blocks along the inner axis.

    Scales that the file lists as parameters are trained. An array that is dequantized
    in another way as well is not packed.
    """
    assert isinstance(source.op, DequantizeLinear)
    weight, scale = source.inputs[:2]
    if not source.op.block_size or source.op.axis % 2 != is_straight:
        return False
    if any(user.op != source.op for user in flow.users.get(str(weight), ())):
        return False
    return not is_listed_parameter(flow.graph, str(scale))


def _stored_operands(
    flow: Dataflow, source: Node, is_straight: bool, zeros: Array | None
) -> tuple[str, str, str | None]:
    """Return the packed weight, the rows of scales and the packed zero points."""
    weight, scale, zero_point = (*source.inputs, None)[:3]
    arrays = (flow.graph.constants[str(weight)], flow.graph.constants[str(scale)])
    rows, scales = (array if is_straight else array.T for array in arrays)
    bits, size = INTEGERS[rows.dtype][0], source.op.attrs()["block_size"]
    stored = packed(rows, size).reshape(len(rows), -1, size * bits // 8)
    scales = np.ascontiguousarray(scales)
    shifts: str | None = None
    if zeros is not None:
        whole = packed(zeros if is_straight else zeros.T, 8 // bits)
        name = zero_point or str(scale)
        suffix = "_packed" if zero_point else "_zero_points_packed"
        shifts = derive(flow.graph, name, whole, suffix)
    packed_name = derive(flow.graph, str(weight), stored, "_packed")
    return packed_name, derive(flow.graph, str(scale), scales, ".rows"), shifts


def packed(rows: Array, multiple: int) -> Array:
    """Return the integers of each row in bytes, the first in the lowest bits.

    Signed integers become unsigned ones. Rows are filled with zeros up to a
    ``multiple`` of elements.
    """
    bits, offset = INTEGERS[rows.dtype]
    values = (rows.astype(np.int16) + offset).astype(np.uint8)
    values = np.pad(values, ((0, 0), (0, -values.shape[1] % multiple)))
    return values if bits == 8 else values[:, 0::2] | values[:, 1::2] << 4
