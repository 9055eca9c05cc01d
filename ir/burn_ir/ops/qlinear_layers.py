"""The modules of ``burn.nn`` for products of quantized operands with stored weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn import dtypes
from burn_ir.op import Layer, Type
from burn_ir.ops.options import non_default

#: The position of each parameter among the operands.
POSITIONS = {
    "weight": 3,
    "bias": 8,
    "weight_scale": 4,
    "weight_zero_point": 5,
    "x_scale": 1,
    "x_zero_point": 2,
    "scale": 6,
    "zero_point": 7,
}


def qlinear_layer(
    name: str,
    sizes: tuple[Any, ...],
    options: Mapping[str, Any],
    operands: Sequence[Type | None],
    outputs: int,
) -> Layer | None:
    """Return the layer ``name`` of a product of ``operands``; None if it has none.

    All operands but the input are stored. Scale and zero point of the weight are one
    number, or one for each of the ``outputs``.
    """
    stored = [t for t in operands[1:] if t is not None]
    if any(t.known is None for t in stored):
        return None
    x_zero_point, weight, zero_point = operands[2], operands[3], operands[7]
    assert weight is not None and x_zero_point is not None and zero_point is not None
    shapes = [None if t is None else t.shape for t in operands[1:8]]
    each = shapes.pop(3)
    if shapes.pop(3) != each or each not in ((), (outputs,)):
        return None
    del shapes[2]  # of the weight
    if any(shape != () for shape in shapes):
        return None
    scales = [operands[position] for position in (1, 4, 6)]
    if any(t is None or t.dtype != dtypes.float32 for t in scales):
        return None
    own = non_default(
        per_channel=(each != (), False),
        x_dtype=(x_zero_point.dtype, dtypes.uint8),
        weight_dtype=(weight.dtype, dtypes.uint8),
        dtype=(zero_point.dtype, dtypes.uint8),
    )
    weights = {
        parameter: position
        for parameter, position in POSITIONS.items()
        if position < len(operands) and operands[position] is not None
    }
    tables = frozenset(p for p in weights if not p.endswith("scale"))
    return Layer(name, sizes, {**options, **own}, weights, tables=tables)
