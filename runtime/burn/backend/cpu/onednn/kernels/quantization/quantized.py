"""Int8 layers with oneDNN.

Products are accumulated in int32; scales, epilogue and requantization are one pass.
Weights are signed; those of linear layers may have a zero point. Without VNNI sums of
two products could saturate: NumPy computes on such processors.
"""

from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    BIAS,
    DST,
    SCALES,
    SRC,
    VNNI,
    WEIGHTS,
    WEIGHTS_MD,
    ZERO_POINTS,
    Api,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import empty, may_overwrite, noting
from burn.backend.cpu.onednn.binding.engine import Session, current
from burn.backend.cpu.onednn.binding.memory import (
    KINDS,
    Array,
    Handle,
    address,
    of_array,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32, Arranged, form
from burn.backend.cpu.onednn.binding.prepared import (
    Description,
    Operands,
    Prepared,
    Scalings,
)
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Grouped,
)
from burn.backend.cpu.onednn.kernels.post_ops import After, addend_index, post_ops
from burn.backend.cpu.onednn.kernels.quantization.rounding import is_shifted, wide
from burn.dtypes import DType, int8, int32, uint8
from burn.ops.qdq_layers import (
    Integers,
    Scaling,
)


class QuantizedOperands(NamedTuple):
    """The operands of a layer, and the format of its result."""

    x: Integers
    weight: Integers
    bias: Array | None
    residual: Any
    result: Scaling | None
    dtype: DType
    after: After

    def key(self) -> tuple[Any, ...]:
        """Return the cache key of the operands."""
        numbers = [form(part[0]) for part in (self.x, self.weight)]
        scaled = [_count(part) for part in (self.x[1], self.weight[1])]
        shifted = [is_shifted(self.x[2]), is_shifted(self.weight[2])]
        if self.result is not None:
            shifted.append(is_shifted(self.result[1]))
        addend = self.residual
        if isinstance(addend, tuple):
            addend = (form(addend[0]), *_sum(addend))
        elif addend is not None:
            addend = form(addend)
        parts = (*numbers, *scaled, *shifted, form(self.bias), addend)
        return (*parts, self.result is None, self.dtype.char, self.after)


def session_for(layer: QuantizedOperands) -> Session | None:
    """Return the session if oneDNN supports the operands."""
    x, weight = layer.x[0], layer.weight[0]
    if x.dtype not in (int8, uint8) or weight.dtype != int8:
        return None
    addend = layer.residual
    if isinstance(addend, tuple):
        if layer.result is None or addend[0].dtype not in (int8, uint8):
            return None
    elif addend is not None and addend.dtype != FLOAT32:
        return None
    if layer.bias is not None and layer.bias.dtype != FLOAT32:
        return None
    session = current()
    return session if session and session.api.instructions() & VNNI else None


def _count(scale: Array) -> int:
    return int(np.size(scale))


def _sum(residual: Integers) -> tuple[float, int, int]:
    """Return scale, zero point and kind of an integer addend."""
    numbers, scale, shift = residual
    zero = 0 if shift is None else int(np.reshape(shift, ()))
    return float(np.reshape(scale, ())), zero, KINDS[numbers.dtype]


def may_be_in_place(layer: QuantizedOperands) -> bool:
    """Return whether the result may overwrite the integer addend."""
    addend = layer.residual
    if not isinstance(addend, tuple):
        return False
    return may_overwrite(addend[0], layer.x[0], layer.weight[0], layer.bias)


class Layer:
    """A prepared int8 layer."""

    __slots__ = (
        *("_arranged", "_form", "_in_place", "_prepared", "_residual", "_weights"),
    )

    def __init__(
        self,
        prepared: Prepared,
        weights: Weights,
        form: tuple[tuple[int, ...], tuple[int, ...]],
        arranged: tuple[Arranged | None, Arranged | None],
        in_place: bool,
    ) -> None:
        self._prepared, self._weights, self._form = prepared, weights, form
        (self._arranged, self._residual), self._in_place = arranged, in_place

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, layer: QuantizedOperands) -> Array:
        """Return the result."""
        x, residual = layer.x[0], layer.residual
        if self._arranged is not None:
            x = self._arranged(x)
        out, others = self._result(layer, residual)
        places = [address(x), self._weights.place(layer.weight[0]), address(out)]
        places += [address(part) for part in others]
        if layer.bias is not None:
            places.append(address(layer.bias))
        scalings = _scaling_arrays(layer)
        self._prepared.run(*places, *map(address, scalings))
        return out

    def _result(
        self, layer: QuantizedOperands, residual: Any
    ) -> tuple[Array, list[Array]]:
        """Return memory for the result, and the remaining addends."""
        if isinstance(residual, tuple):
            source = residual[0]
            if self._residual is not None:
                source = self._residual(source)
            if self._in_place:
                return source.view(layer.dtype), []
            out = self._empty(layer.dtype)
            _assign(out.view(source.dtype), source)
            return out, []
        out = self._empty(layer.dtype)
        if residual is None:
            return out, []
        return out, [residual if self._residual is None else self._residual(residual)]

    def _empty(self, dtype: DType) -> Array:
        shape, order = self._form
        memory = empty(tuple(shape[axis] for axis in order), dtype)
        return memory.transpose(np.argsort(order).tolist())


def _assign(target: Array, source: Array) -> None:
    notes = noting()
    if notes is None:
        np.copyto(target, source)
    else:
        notes.assign(target, source)


def _scaling_arrays(layer: QuantizedOperands) -> list[Array]:
    """Return scales and zero points, in the order of :func:`scalings_of`."""
    scales, shifts = [layer.x[1], layer.weight[1]], [layer.x[2], layer.weight[2]]
    if layer.result is not None:
        scales.append(layer.result[0])
        shifts.append(layer.result[1])
    return scales + [wide(shift) for shift in shifts if is_shifted(shift)]


def scalings_of(layer: QuantizedOperands, mask: int) -> Scalings:
    """Return the scaled and shifted operands; ``mask`` has the weights' output axis."""
    by_output = mask if _count(layer.weight[1]) > 1 else 0
    scales = [(SRC, 0), (WEIGHTS, by_output)]
    shifts = [SRC] if is_shifted(layer.x[2]) else []
    shifts += [WEIGHTS] if is_shifted(layer.weight[2]) else []
    if layer.result is not None:
        scales.append((DST, 0))
        if is_shifted(layer.result[1]):
            shifts.append(DST)
    return Scalings(tuple(scales), tuple(shifts))


def _scaling_operands(
    api: Api, layer: QuantizedOperands, scalings: Scalings
) -> Operands:
    outputs = _count(layer.weight[1])
    operands: Operands = [
        (SCALES | which, strided(api, (outputs if which == WEIGHTS else 1,), (1,)))
        for which, _ in scalings.scales
    ]
    for which in scalings.zero_points:
        operands.append((ZERO_POINTS | which, strided(api, (1,), (1,), int32)))
    return operands


def epilogue_of(api: Api, layer: QuantizedOperands, other: Handle) -> Any:
    addend = layer.residual
    if isinstance(addend, tuple):
        return post_ops(api, layer.after, None, _sum(addend))
    return post_ops(api, layer.after, other)


def operands_of(
    layer: QuantizedOperands, parts: Any, api: Api, scalings: Scalings
) -> Operands:
    source, description, target, other, bias = parts
    operands: Operands = [(SRC, source), (WEIGHTS, description.descriptor(WEIGHTS_MD))]
    operands.append((DST, target))
    if layer.residual is not None and not isinstance(layer.residual, tuple):
        operands.append((addend_index(layer.after), other))
    if bias is not None:
        operands.append((BIAS, bias))
    return operands + _scaling_operands(api, layer, scalings)


def weights_of(
    session: Session, primitives: Primitives, view: Grouped, description: Description
) -> Weights:
    lying = (view.shape, view.strides)
    plain = of_array(primitives.api, view)
    return Weights(primitives, session.packed, plain, lying, description, WEIGHTS_MD)
