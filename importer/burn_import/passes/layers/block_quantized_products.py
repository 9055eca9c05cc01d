"""Products with a matrix that is dequantized by blocks, as ``MatMulNBits``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import dtypes
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
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
    x = flow.graph.type(node.inputs[0])
    if source is None or x is None or not _has_inner_blocks(source, is_straight):
        return None
    names = (*source.inputs, None)[:3]
    weight, scale, zeros = (flow.stored(name) for name in names)
    if weight is None or scale is None or (zeros is None) != (names[2] is None):
        return None
    if weight.ndim != 2 or weight.dtype not in INTEGERS:
        return None
    bits, size = INTEGERS[weight.dtype][0], source.op.attrs()["block_size"]
    if x.dtype != scale.dtype or x.dtype not in FLOATS or size * bits % 8:
        return None
    if zeros is None and weight.dtype in (dtypes.uint4, dtypes.uint8):
        zeros = np.zeros(scale.shape, weight.dtype)
    arrays = [(a if is_straight else a.T) for a in (weight, scale)]
    outer, inner = arrays[0].shape
    stored = packed(arrays[0], size).reshape(outer, -1, size * bits // 8)
    operands = [
        derive(flow.graph, str(names[0]), stored, "_packed"),
        derive(flow.graph, str(names[1]), np.ascontiguousarray(arrays[1]), ".rows"),
    ]
    if zeros is not None:
        rows = packed(zeros if is_straight else zeros.T, 8 // bits)
        origin, suffix = names[2], "_packed"
        if origin is None:
            origin, suffix = names[1], "_zero_points_packed"
        operands.append(derive(flow.graph, str(origin), rows, suffix))
    if bias is not None:
        operands += [""] * (4 - len(operands)) + [bias]
    inputs = (node.inputs[0], *(name or None for name in operands))
    op = MatMulNBits(K=inner, N=outer, block_size=size, bits=bits)
    return replace(node, op=op, inputs=inputs)


def _has_inner_blocks(source: Node, is_straight: bool) -> bool:
    """Return whether ``source`` has a scale for each block along the inner axis."""
    assert isinstance(source.op, DequantizeLinear)
    return bool(source.op.block_size) and source.op.axis % 2 == is_straight


def packed(rows: Array, multiple: int) -> Array:
    """Return the integers of each row in bytes, the first in the lowest bits.

    Signed integers become unsigned ones. Rows are filled with zeros up to a
    ``multiple`` of elements.
    """
    bits, offset = INTEGERS[rows.dtype]
    values = (rows.astype(np.int16) + offset).astype(np.uint8)
    values = np.pad(values, ((0, 0), (0, -values.shape[1] % multiple)))
    return values if bits == 8 else values[:, 0::2] | values[:, 1::2] << 4
