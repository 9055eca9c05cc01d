"""Batch norm in training, and the gradients of norms and softmax, with oneDNN."""

from typing import Any

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    BACKWARD,
    BACKWARD_DATA,
    DIFF_DST,
    DIFF_SCALE,
    DIFF_SRC,
    DST,
    MEAN,
    SCALE,
    SOFTMAX,
    SRC,
    TRAINING,
    USE_SCALE,
    USE_SHIFT,
    VARIANCE,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import (
    compact,
    empty,
    empty_like,
    like_memory,
    noting,
)
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    Prepared,
    Ready,
    described,
)
from burn.backend.cpu.onednn.kernels.norms import long_sums
from burn.backend.cpu.onednn.kernels.norms.normalization import (
    are_channels,
    fills,
    is_last,
    prepared_batch_norm,
    session_for,
)
from burn.ops.layer_norm import layer_norm_grad as layer_norm_grad_op
from burn.ops.norm import (
    batch_norm_grad as batch_norm_grad_op,
    batch_norm_train as batch_norm_train_op,
)
from burn.ops.softmax import softmax_grad as softmax_grad_op

_COST = 16


@batch_norm_train_op.on(Cpu)
def batch_norm_train(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    """Compute :func:`burn.ops.batch_norm_train` with oneDNN if that is faster."""
    session = session_for(x, weight, bias)
    image = _with_space(x)
    if session is not None and are_channels(image, weight, bias):
        flags = (weight is not None) * USE_SCALE | (bias is not None) * USE_SHIFT

        def make(primitives: Primitives) -> Any:
            return _batch_norm(primitives, image.shape, epsilon, flags)

        key = ("batch_norm_train", image.shape, epsilon, flags)
        kernel = session.primitives.get(key, make, x.size)
        if kernel is not None:
            parts = (part for part in (weight, bias) if part is not None)
            return kernel.run(x, *parts)
    return batch_norm_train_op.kernel(x, weight, bias, epsilon=epsilon)


@batch_norm_grad_op.on(Cpu)
def batch_norm_grad(
    grad: Array,
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    """Compute :func:`burn.ops.batch_norm_grad` with oneDNN if that is faster."""
    session = session_for(x, grad, mean, var, weight) if weight is not None else None
    image = _with_space(x)
    if session is not None and are_channels(image, mean, var, weight):

        def make(primitives: Primitives) -> Any:
            return _batch_norm_grad(primitives, image.shape, epsilon)

        key = ("batch_norm_grad", image.shape, epsilon)
        kernel = session.primitives.get(key, make, x.size)
        if kernel is not None:
            return kernel.run(like_memory(grad, x), x, mean, var, weight)
    return batch_norm_grad_op.kernel(grad, x, mean, var, weight, epsilon=epsilon)


@layer_norm_grad_op.on(Cpu)
def layer_norm_grad(
    grad: Array,
    x: Array,
    weight: Array | None = None,
    *,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> Any:
    """Compute :func:`burn.ops.layer_norm_grad` with oneDNN if that is faster."""
    session = session_for(x, grad, weight)
    if session is not None and noting() is not None:
        grad, x = compact(grad), compact(x)
    dense = grad.flags.c_contiguous and x.flags.c_contiguous
    if session is not None and is_last(axis, x.ndim) and dense:
        width = x.shape[-1]
        rows = (x.size // width, width)
        if fills(weight, width):

            def make(primitives: Primitives) -> "_RowsGrad | None":
                return _layer_norm_grad(primitives, rows, epsilon, weight is not None)

            key = ("layer_norm_grad", rows, epsilon, weight is not None)
            kernel = session.primitives.get(key, make, x.size * _COST)
            if kernel is not None:
                return kernel.run(grad, x, weight)
    return layer_norm_grad_op.kernel(grad, x, weight, axis=axis, epsilon=epsilon)


@softmax_grad_op.on(Cpu)
def softmax_grad(grad: Array, out: Array, *, axis: Any = -1) -> Array:
    """Compute :func:`burn.ops.softmax_grad` with oneDNN if that is faster."""
    session = session_for(out, grad) if grad.shape == out.shape else None
    if session is not None and is_last(axis, out.ndim):
        grad, out = compact(grad), compact(out)
        rows = (out.size // out.shape[-1], out.shape[-1])

        def make(primitives: Primitives) -> "_SoftmaxGrad | None":
            return _softmax_grad(primitives, rows)

        key = ("softmax_grad", rows)
        kernel = session.primitives.get(key, make, out.size * _COST)
        if kernel is not None:
            return kernel.run(grad, out)
    return softmax_grad_op.kernel(grad, out, axis=axis)


def _with_space(x: Array) -> Array:
    """Return ``x``, with a spatial axis added if it has none."""
    return x[..., None] if x.ndim == 2 else x


class _Norm(Ready):
    """A norm that also returns its statistics."""

    __slots__ = ()

    def run(self, x: Array, *parts: Array) -> tuple[Array, Array, Array]:
        """Return ``x`` normalized, in its memory order, the means and the variances."""
        out = empty_like(x, *parts)
        mean, var = empty(x.shape[1:2]), empty(x.shape[1:2])
        places = (*map(address, (x, out, mean, var)), *map(address, parts))
        self._prepared.run(*places)
        return out, mean, var


class _NormGrad(Ready):
    """The gradient of such a norm."""

    __slots__ = ()

    def run(self, grad: Array, x: Array, *parts: Array) -> tuple[Array, Array, Array]:
        """Return the gradients of ``x``, in its memory order, of weight and of bias."""
        out = empty_like(grad, x, *parts)
        slope, shift = empty(x.shape[1:2]), empty(x.shape[1:2])
        self._prepared.run(*map(address, (grad, x, *parts, out, slope, shift)))
        return out, slope, shift


class _SoftmaxGrad(Ready):
    """The gradient of a softmax of rows."""

    __slots__ = ()

    def run(self, grad: Array, out: Array) -> Array:
        """Return the gradient of the softmax input, from its result ``out``."""
        result = empty_like(grad, out)
        self._prepared.run(*map(address, (grad, out, result)))
        return result


class _RowsGrad:
    """The gradient of a norm of rows, with recomputed statistics."""

    __slots__ = ("_backward", "_forward", "_rows")

    def __init__(
        self, forward: Prepared, backward: Prepared, rows: tuple[int, int]
    ) -> None:
        self._forward, self._backward, self._rows = forward, backward, rows

    @property
    def implementation(self) -> str:
        return self._backward.description.implementation

    def run(self, grad: Array, x: Array, weight: Array | None) -> tuple[Array, ...]:
        """Return the gradient of ``x``, and that of ``weight`` if present."""
        count, width = self._rows
        out, mean, var = empty(x.shape), empty((count,)), empty((count,))
        self._forward.run(*map(address, (x, out, mean, var)))
        places = [*map(address, (grad, x, mean, var, out))]
        if weight is None:
            self._backward.run(*places)
            return (out,)
        slope = empty((width,))
        self._backward.run(*places, address(weight), address(slope))
        return out, slope


def _batch_norm(
    primitives: Primitives, shape: tuple[int, ...], epsilon: float, flags: int
) -> _Norm | long_sums.LongNorm | None:
    if long_sums.parts_of(shape, long_sums.LEAST) > 1:
        return long_sums.prepared_norm(primitives, shape, epsilon, flags)
    prepared = prepared_batch_norm(primitives, shape, epsilon, flags, TRAINING)
    return None if prepared is None else _Norm(prepared)


def _batch_norm_grad(
    primitives: Primitives, shape: tuple[int, ...], epsilon: float
) -> _NormGrad | long_sums.LongNormGrad | None:
    if long_sums.parts_of(shape, long_sums.LEAST_OF_GRADIENTS) > 1:
        return long_sums.prepared_norm_grad(primitives, shape, epsilon)
    prepared = long_sums.prepared_batch_norm_grad(primitives, shape, epsilon)
    return None if prepared is None else _NormGrad(prepared)


def _layer_norm_grad(
    primitives: Primitives, rows: tuple[int, int], epsilon: float, scaled: bool
) -> _RowsGrad | None:
    api, flags = primitives.api, scaled * USE_SCALE
    matrix = strided(api, rows, row_major(rows))
    column, line = strided(api, rows[:1], (1,)), strided(api, rows[1:], (1,))
    forward, hint = (
        described(
            *(api, "layer_normalization_forward", api.engine, TRAINING),
            *(matrix, matrix, column, epsilon, each),
        )
        for each in (0, flags)
    )
    description = hint and described(
        *(api, "layer_normalization_backward", api.engine),
        *(BACKWARD if scaled else BACKWARD_DATA, matrix, matrix, matrix, column),
        *(epsilon, flags, hint.handle),
    )
    if description is None or forward is None:
        return None
    statistics: Operands = [(MEAN, column), (VARIANCE, column)]
    back: Operands = [(DIFF_DST, matrix), (SRC, matrix), *statistics]
    back.append((DIFF_SRC, matrix))
    if scaled:
        back += [(SCALE, line), (DIFF_SCALE, line)]
    return _RowsGrad(
        primitives.prepared(forward, [(SRC, matrix), (DST, matrix), *statistics]),
        primitives.prepared(description, back),
        rows,
    )


def _softmax_grad(primitives: Primitives, rows: tuple[int, int]) -> _SoftmaxGrad | None:
    api = primitives.api
    matrix = strided(api, rows, row_major(rows))
    hint = described(
        *(api, "softmax_forward", api.engine, TRAINING, SOFTMAX, matrix, matrix, 1)
    )
    description = hint and described(
        *(api, "softmax_backward", api.engine, SOFTMAX, matrix, matrix, matrix, 1),
        hint.handle,
    )
    if description is None:
        return None
    operands: Operands = [(DIFF_DST, matrix), (DST, matrix), (DIFF_SRC, matrix)]
    return _SoftmaxGrad(primitives.prepared(description, operands))
