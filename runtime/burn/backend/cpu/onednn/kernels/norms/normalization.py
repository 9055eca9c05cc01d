"""Softmax, layer norm and batch norm with oneDNN."""

from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    DST,
    FUSE_RELU,
    INFERENCE,
    LOG_SOFTMAX,
    MEAN,
    SCALE,
    SHIFT,
    SOFTMAX,
    SRC,
    USE_GLOBAL_STATS,
    USE_SCALE,
    USE_SHIFT,
    VARIANCE,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import (
    Notes,
    compact,
    empty_like,
    has_nan,
    noting,
)
from burn.backend.cpu.onednn.binding.engine import Session, current, limits
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    address,
    channels_last,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import are_float32, is_computed, lies_as
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    Prepared,
    Ready,
    described,
)
from burn.backend.cpu.onednn.kernels.norms.channel_scales import (
    prepared_scales,
    reads_few_sets,
    scale_and_shift,
)
from burn.backend.cpu.onednn.kernels.norms.generated_scales import (
    are_scaled_apart,
    scaled,
)
from burn.ops.attention import masked_softmax as masked_softmax_op
from burn.ops.fused import batch_norm_then as batch_norm_then_op
from burn.ops.layer_norm import layer_norm as layer_norm_op
from burn.ops.norm import batch_norm as batch_norm_op
from burn.ops.softmax import log_softmax as log_softmax_op, softmax as softmax_op

# An element takes as long as that many multiplications.
_COST = 16


@softmax_op.on(Cpu)
def softmax(x: Array, *, axis: Any = -1) -> Array:
    """Compute :func:`burn.ops.softmax` with oneDNN if faster, else with NumPy."""
    out = _over_last(x, axis, SOFTMAX)
    return softmax_op.kernel(x, axis=axis) if out is None else out


@log_softmax_op.on(Cpu)
def log_softmax(x: Array, *, axis: Any = -1) -> Array:
    """Compute :func:`burn.ops.log_softmax` with oneDNN if faster, else with NumPy."""
    out = _over_last(x, axis, LOG_SOFTMAX)
    return log_softmax_op.kernel(x, axis=axis) if out is None else out


@masked_softmax_op.on(Cpu)
def masked_softmax(x: Array) -> Array:
    """Compute the softmax of attention with oneDNN if faster, else with NumPy."""
    out = _over_last(x, -1, SOFTMAX)
    return masked_softmax_op.kernel(x) if out is None else out


@layer_norm_op.on(Cpu)
def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> Array:
    """Compute :func:`burn.ops.layer_norm` with oneDNN if faster, else with NumPy."""
    session = None
    if is_computed(x) and are_float32(weight, bias) and x.size >= limits().rows:
        session = current() if x.size else None
    if session is not None and noting() is not None:
        x = compact(x)
    if session is not None and is_last(axis, x.ndim) and x.flags.c_contiguous:
        width = x.shape[-1]
        if all(fills(part, width) for part in (weight, bias)):
            rows = (x.size // width, width)
            flags = (weight is not None) * USE_SCALE | (bias is not None) * USE_SHIFT

            def make(primitives: Primitives) -> "_Line | None":
                return _layer_norm(primitives, rows, epsilon, flags, x.dtype)

            key = ("layer_norm", rows, epsilon, flags, x.dtype.char)
            kernel = session.primitives.get(key, make, x.size * _COST)
            if kernel is not None:
                parts = [part for part in (weight, bias) if part is not None]
                return kernel.run(x, *parts)
    return layer_norm_op.kernel(x, weight, bias, axis=axis, epsilon=epsilon)


@batch_norm_op.on(Cpu)
def batch_norm(
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """Compute :func:`burn.ops.batch_norm` with oneDNN if faster, else with NumPy."""
    parts = (mean, var, weight, bias)
    out = _normalize(x, parts, epsilon, 0)
    return batch_norm_op.kernel(x, *parts, epsilon=epsilon) if out is None else out


@batch_norm_then_op.on(Cpu)
def batch_norm_then(
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    after: Any,
    epsilon: float = 1e-5,
) -> Array:
    """Compute :func:`burn.ops.fused.batch_norm_then` with oneDNN, or with NumPy."""
    parameters, out, notes = (mean, var, weight, bias), None, noting()
    names = [name for name, *_ in after]
    factor = after[0][1] if names[0] == "scale" else 1.0
    has_relu, parts = names[-1] == "relu", parameters
    if (
        factor != 1.0
        and notes is not None
        and all(part is None or notes.is_constant(part) for part in (weight, bias))
    ):
        scales = [np.ones_like(mean) if weight is None else weight]
        scales += [] if bias is None else [bias]
        parts = (
            mean,
            var,
            *(_scale_constant(part, factor, notes) for part in scales),
            None,
        )[:4]
    if parts is not parameters or factor == 1.0:
        out = _normalize(x, parts, epsilon, has_relu * FUSE_RELU)
    if out is None:
        return batch_norm_then_op.kernel(x, *parameters, after=after, epsilon=epsilon)
    return out


def _scale_constant(part: Array, factor: float, notes: Notes) -> Array:
    """Return a constant of a plan times ``factor``."""
    scaled = part * np.float32(factor)
    notes.keep(scaled, constant=True)
    return scaled


def _normalize(
    x: Array, parts: tuple[Array | None, ...], epsilon: float, also: int
) -> Array | None:
    """Return the batch norm of channels-last ``x``, with ``also`` as an extra flag."""
    session = session_for(x, *parts)
    if session is None or not are_channels(x, *parts):
        return None
    _, _, weight, bias = parts
    flags = USE_GLOBAL_STATS | (weight is not None) * USE_SCALE
    flags |= (bias is not None) * USE_SHIFT | also

    def make(primitives: Primitives) -> "_Line | None":
        return _batch_norm(primitives, x.shape, epsilon, flags)

    key = ("batch_norm", x.shape, epsilon, flags)
    kernel: _Line | None = session.primitives.get(key, make, x.size)
    if kernel is None:
        return None
    has_relu = bool(also & FUSE_RELU)
    if are_scaled_apart(x):
        constants = scale_and_shift(parts, epsilon)
        if constants is not None:
            return scaled(x, *constants, has_relu)
    if reads_few_sets(x, kernel.implementation):
        out = _scaled_image(session, x, parts, epsilon, has_relu)
        if out is not None:
            return out
    return kernel.run(x, *(part for part in parts if part is not None))


def _scaled_image(
    session: Session,
    x: Array,
    parts: tuple[Array | None, ...],
    epsilon: float,
    has_relu: bool,
) -> Array | None:
    """Return a batch norm by constant scales and shifts, None if they may change."""
    constants = scale_and_shift(parts, epsilon)
    if constants is None:
        return None

    def make(primitives: Primitives) -> "_Line | None":
        prepared = prepared_scales(primitives, x.shape, has_relu=has_relu)
        return None if prepared is None else _Line(prepared)

    key = ("channel_scales", x.shape, has_relu)
    kernel: _Line | None = session.primitives.get(key, make, x.size)
    return None if kernel is None else kernel.run(x, *constants)


def session_for(x: Array, *parts: Array | None) -> Session | None:
    if x.size < limits().rows or not x.size or not are_float32(x, *parts):
        return None
    return current()


def fills(part: Array | None, extent: int) -> bool:
    """Return whether ``part`` is absent or has one number for each of ``extent``."""
    return part is None or (part.shape == (extent,) and part.flags.c_contiguous)


def are_channels(x: Array, *parts: Array | None) -> bool:
    """Return whether ``x`` is channels-last, and each part has a number per channel.

    In any other order NumPy is quicker.
    """
    if not 3 <= x.ndim <= 5 or not all(fills(part, x.shape[1]) for part in parts):
        return False
    return lies_as(x, channels_last(x.shape))


def is_last(axis: Any, rank: int) -> bool:
    """Return whether ``axis`` is the last axis only."""
    if isinstance(axis, tuple | list) and len(axis) == 1:
        axis = axis[0]
    return isinstance(axis, int) and axis in (-1, rank - 1)


def _over_last(x: Array, axis: Any, kind: int) -> Array | None:
    """Return the softmax over the last axis; None if NumPy should compute it."""
    if x.ndim == 0 or x.size < limits().rows or not is_computed(x) or not x.size:
        return None
    session = current()
    if session is None or not is_last(axis, x.ndim):
        return None
    if noting() is not None:
        x = compact(x)
    if not x.flags.c_contiguous:
        return None
    rows = (x.size // x.shape[-1], x.shape[-1])

    def make(primitives: Primitives) -> "_Line | None":
        return _softmax(primitives, rows, kind, x.dtype)

    key = ("softmax", rows, kind, x.dtype.char)
    kernel = session.primitives.get(key, make, x.size * _COST)
    if kernel is None:
        return None
    out = kernel.run(x)
    # In a row with an infinity or NaN the library returns 0 where NaN is correct.
    return None if has_nan(out, part=out) else out


class _Line(Ready):
    """A primitive with input and output of equal layout, and small other operands."""

    __slots__ = ()

    def run(self, x: Array, *parts: Array) -> Array:
        """Return the result, in the memory order of ``x``."""
        out = empty_like(x, *parts)
        self._prepared.run(address(x), address(out), *map(address, parts))
        return out


def _softmax(
    primitives: Primitives, rows: tuple[int, int], kind: int, dtype: np.dtype[Any]
) -> _Line | None:
    api = primitives.api
    matrix = strided(api, rows, row_major(rows), dtype)
    description = described(
        *(api, "softmax_forward", api.engine, INFERENCE, kind, matrix, matrix, 1)
    )
    if description is None:
        return None
    return _Line(primitives.prepared(description, [(SRC, matrix), (DST, matrix)]))


def _layer_norm(
    primitives: Primitives,
    rows: tuple[int, int],
    epsilon: float,
    flags: int,
    dtype: np.dtype[Any],
) -> _Line | None:
    api = primitives.api
    matrix = strided(api, rows, row_major(rows), dtype)
    description = described(
        *(api, "layer_normalization_forward", api.engine, INFERENCE),
        *(matrix, matrix, None, epsilon, flags),
    )
    if description is None:
        return None
    line = strided(api, rows[1:], (1,))
    operands: Operands = [(SRC, matrix), (DST, matrix), *_affine(line, flags)]
    return _Line(primitives.prepared(description, operands))


def _affine(line: Handle, flags: int) -> Operands:
    kinds = ((USE_SCALE, SCALE), (USE_SHIFT, SHIFT))
    return [(kind, line) for flag, kind in kinds if flags & flag]


def _batch_norm(
    primitives: Primitives, shape: tuple[int, ...], epsilon: float, flags: int
) -> _Line | None:
    prepared = prepared_batch_norm(primitives, shape, epsilon, flags, INFERENCE)
    return None if prepared is None else _Line(prepared)


def prepared_batch_norm(
    primitives: Primitives,
    shape: tuple[int, ...],
    epsilon: float,
    flags: int,
    kind: int,
) -> Prepared | None:
    """Return the batch norm of channels-last images, for inference or training."""
    api = primitives.api
    image = strided(api, shape, channels_last(shape))
    description = described(
        *(api, "batch_normalization_forward", api.engine, kind),
        *(image, image, epsilon, flags),
    )
    if description is None:
        return None
    line = strided(api, shape[1:2], (1,))
    operands: Operands = [(SRC, image), (DST, image), (MEAN, line), (VARIANCE, line)]
    operands += _affine(line, flags)
    return primitives.prepared(description, operands)
