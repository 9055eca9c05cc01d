"""Quantization to 8 bits and dequantization by one scale with oneDNN."""

from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import DST, SCALES, SRC, ZERO_POINTS
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import noting, order_for
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    is_dense,
    lines,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32, form
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    Prepared,
    Scalings,
    described,
)
from burn.backend.cpu.onednn.kernels.casting import Recast
from burn.dtypes import DType, int8, int32, uint8
from burn.ops.qdq_layers import (
    from_integers as from_integers_op,
    to_integers as to_integers_op,
)


@to_integers_op.on(Cpu)
def to_integers(
    x: Array, scale: Array, zero_point: Array | None = None, *, dtype: DType
) -> Array:
    """Compute :func:`burn.ops.qdq_layers.to_integers` with oneDNN if supported."""
    out = _rescale(x, scale, zero_point, dtype, DST)
    if out is None:
        return to_integers_op.kernel(x, scale, zero_point, dtype=dtype)
    return out


@from_integers_op.on(Cpu)
def from_integers(x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """Compute :func:`burn.ops.qdq_layers.from_integers` with oneDNN if supported."""
    out = _rescale(x, scale, zero_point, FLOAT32, SRC)
    return from_integers_op.kernel(x, scale, zero_point) if out is None else out


def is_shifted(zero_point: Array | None) -> bool:
    """Return whether there is a zero point that is not 0 or, in int32, is computed."""
    if zero_point is None:
        return False
    return zero_point.dtype == int32 or bool(np.any(zero_point))


def wide(zero_point: Any) -> Array:
    """Return a zero point in the library's dtype; a plan keeps one that is stored."""
    if zero_point.dtype == int32:
        return np.asarray(zero_point)
    offset = np.asarray(zero_point, np.int32)
    notes = noting()
    if notes is not None:
        notes.keep(offset)
    return offset


def _rescale(
    x: Array, scale: Array, zero_point: Array | None, dtype: DType, which: int
) -> Array | None:
    """Return ``x`` as ``dtype`` by a scale of the integer side; None for NumPy."""
    dtypes = {x.dtype, dtype}
    if FLOAT32 not in dtypes or not dtypes & {int8, uint8} or np.size(scale) != 1:
        return None
    session = current()
    if session is None or not x.size or not is_dense(x):
        return None
    shifted, order = is_shifted(zero_point), order_for(x)

    def make(primitives: Primitives) -> Recast | None:
        sides = lines(primitives.api, x, dtype, order)
        primitive = _prepare(primitives, sides, which, shifted)
        return None if primitive is None else Recast(primitive, dtype, order)

    size = x.size if order is None else form(x)
    key = ("scaled", size, x.dtype.char, dtype.char, shifted, order)
    recast: Recast | None = session.primitives.get(key, make, x.size * 4)
    more = [wide(zero_point)] if shifted else []
    return None if recast is None else recast.run(x, scale, *more)


def _prepare(
    primitives: Primitives, sides: tuple[Handle, Handle], which: int, shifted: bool
) -> Prepared | None:
    api, (source, target) = primitives.api, sides
    scalings = Scalings(((which, 0),), (which,) if shifted else ())
    description = described(
        *(api, "reorder", source, api.engine, target, api.engine), scalings=scalings
    )
    if description is None:
        return None
    operands: Operands = [(SRC, source), (DST, target)]
    operands.append((SCALES | which, strided(api, (1,), (1,))))
    if shifted:
        operands.append((ZERO_POINTS | which, strided(api, (1,), (1,), int32)))
    return primitives.prepared(description, operands)
