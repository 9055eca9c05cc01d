"""Convolutions, transposed convolutions and weight gradients with oneDNN."""

from math import prod
from typing import Any

from burn.backend.cpu.blas import convolution
from burn.backend.cpu.blas.generated_convolution import ending_of
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import CONVOLUTION, DECONVOLUTION
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import (
    empty,
    may_overwrite,
    may_round,
    noting,
)
from burn.backend.cpu.onednn.binding.engine import Session, current
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.binding.operands import are_float32, are_multiplied, form
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Grouped,
    Slots,
)
from burn.backend.cpu.onednn.kernels.convolution.conv_primitives import (
    forward,
)
from burn.backend.cpu.onednn.kernels.convolution.conv_primitives_grad import (
    WeightGrad,
    weight_grad,
)
from burn.backend.cpu.onednn.kernels.convolution.generated_groups import (
    has_faster_kernel,
)
from burn.backend.cpu.onednn.kernels.convolution.windowed import (
    Windowed,
)
from burn.backend.cpu.onednn.kernels.convolution.winograd import winograd
from burn.backend.cpu.onednn.kernels.generated_silu import (
    has_silu_apart,
    silu_in_place,
)
from burn.backend.cpu.onednn.kernels.post_ops import After, adds_first
from burn.ops.conv import (
    conv as conv_op,
    conv_transpose as conv_transpose_op,
    conv_weight_grad as conv_weight_grad_op,
)
from burn.ops.fused import conv_grads as conv_grads_op, conv_then as conv_then_op
from burn.ops.window import Windows, transposed, windows

_RANKS = (3, 4, 5)
# A multiplication of a depthwise convolution takes as long as so many of others.
_DEPTHWISE = 4


@conv_op.on(Cpu)
def conv(x: Array, weight: Array, bias: Array | None = None, **static: Any) -> Array:
    """Compute :func:`burn.ops.conv` with oneDNN if that is faster, else with NumPy."""
    kernel = _convolution(x, weight, bias, **static)
    if kernel is None:
        return conv_op.kernel(x, weight, bias, **static)
    if _is_generated(kernel, x, weight, bias, **static):
        return convolution.conv(x, weight, bias, **static)
    return kernel.run(x, weight, bias)


@conv_then_op.on(Cpu)
def conv_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
    **static: Any,
) -> Array:
    """Compute :func:`burn.ops.fused.conv_then` with oneDNN if supported, else NumPy."""
    is_apart = has_silu_apart(after, x, weight, **static)
    inside = after[:-1] if is_apart else after
    kernel = _convolution(x, weight, bias, residual, inside, **static)
    if kernel is None:
        return conv_then_op.kernel(x, weight, bias, residual, after=after, **static)
    if not ending_of(after).rest and _is_generated(kernel, x, weight, bias, **static):
        return convolution.conv_then(x, weight, bias, residual, after=after, **static)
    out = kernel.run(x, weight, bias, residual)
    return silu_in_place(out) if is_apart else out


def _is_generated(
    kernel: Windowed,
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    groups: int = 1,
    **_: Any,
) -> bool:
    return has_faster_kernel(kernel.implementation, x, weight, bias, groups)


@conv_transpose_op.on(Cpu)
def conv_transpose(
    x: Array, weight: Array, bias: Array | None = None, **static: Any
) -> Array:
    """Compute :func:`burn.ops.conv_transpose` with oneDNN if that is faster."""
    kernel = _transposed_convolution(x, weight, bias, **static)
    if kernel is None:
        return conv_transpose_op.kernel(x, weight, bias, **static)
    return kernel.run(x, weight, bias)


def _convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None = None,
    after: After = (),
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Windowed | None:
    """Return the oneDNN kernel of a convolution, None where NumPy computes it."""
    session = _session(x, weight, bias)
    if session is None or not are_multiplied(x, weight, residual):
        return None
    steps = (stride, padding, dilation)
    in_place = residual is not None and residual.dtype == x.dtype
    in_place = in_place and adds_first(after)
    in_place = in_place and may_overwrite(residual, x, weight, bias)
    planned, constant = noting() is not None, may_round(weight)

    def make(primitives: Primitives) -> Windowed | None:
        if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
            return None  # the error is NumPy's
        wins = windows(x.shape[2:], weight.shape[2:], *steps)
        shape = (x.shape[0], weight.shape[0], *wins.count)
        view = Grouped.of_conv(weight, groups)
        slots = Slots(
            *(x, view, bias, shape, after, residual, in_place, planned, constant)
        )
        return _forward(session, primitives, slots, wins)

    forms = (form(x), form(weight), form(bias), form(residual))
    key = ("conv", planned, constant, groups, steps, after, forms, in_place)
    work = _work(x, weight, stride) * (_DEPTHWISE if weight.shape[1] == 1 else 1)
    kernel: Windowed | None = session.primitives.get(key, make, work)
    return kernel


def _transposed_convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Windowed | None:
    """Return the oneDNN kernel of a transposed convolution, None for NumPy's."""
    session = _session(x, weight, bias)
    if session is None:
        return None
    steps = (stride, padding, output_padding, dilation)
    planned, constant = noting() is not None, may_round(weight)

    def make(primitives: Primitives) -> Windowed | None:
        if x.shape[1] != weight.shape[0] or x.shape[1] % groups:
            return None  # the error is NumPy's
        wins = transposed(x.shape[2:], weight.shape[2:], *steps)
        shape = (x.shape[0], weight.shape[1] * groups, *wins.size)
        view = Grouped.of_transpose(weight, groups)
        slots = Slots(
            *(x, view, bias, shape),
            planned=planned,
            constant=constant,
            mirrored=True,
        )
        return _forward_transposed(session, primitives, slots, wins)

    forms = (form(x), form(weight), form(bias))
    key = ("deconv", planned, constant, groups, steps, forms)
    kernel: Windowed | None = session.primitives.get(key, make, _work(x, weight))
    return kernel


@conv_weight_grad_op.on(Cpu)
def conv_weight_grad(x: Array, grad: Array, **static: Any) -> Array:
    """Compute :func:`burn.ops.conv_weight_grad` with oneDNN if that is faster."""
    kernel = _weight_grad(x, grad, False, **static)
    if kernel is None:
        return conv_weight_grad_op.kernel(x, grad, **static)
    return kernel.run(x, grad)


@conv_grads_op.on(Cpu)
def conv_grads(x: Array, grad: Array, **static: Any) -> Any:
    """Compute :func:`burn.ops.fused.conv_grads` with oneDNN if that is faster."""
    kernel = _weight_grad(x, grad, True, **static)
    if kernel is None:
        return conv_grads_op.kernel(x, grad, **static)
    bias = empty(grad.shape[1:2])
    return kernel.run(x, grad, bias), bias


def _weight_grad(
    x: Array,
    grad: Array,
    biased: bool,
    *,
    kernel_size: tuple[int, ...],
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> WeightGrad | None:
    """Return the oneDNN kernel of the gradient of weights, None for NumPy's."""
    if biased and not are_float32(x):
        return None
    session = _session(x, grad, None, work=0)
    if session is None:
        return None
    steps = (stride, padding, dilation)

    def make(primitives: Primitives) -> WeightGrad | None:
        if x.shape[1] % groups or grad.shape[1] % groups:
            return None
        wins = windows(x.shape[2:], kernel_size, *steps)
        if wins.count != grad.shape[2:] or x.shape[0] != grad.shape[0]:
            return None
        return weight_grad(primitives, x, grad, wins, groups, biased)

    key = ("grad", biased, groups, steps, kernel_size, form(x), form(grad))
    work = grad.size * prod(kernel_size) * (x.shape[1] // groups)
    kernel: WeightGrad | None = session.primitives.get(key, make, work)
    return kernel


def _forward(
    session: Session, primitives: Primitives, slots: Slots, wins: Windows
) -> Windowed | None:
    """Return a convolution by Winograd where that is faster, else a direct one."""
    kernel = winograd(session, primitives, slots, wins)
    if kernel is None:
        return forward(session, primitives, slots, wins, CONVOLUTION)
    return kernel


def _forward_transposed(
    session: Session, primitives: Primitives, slots: Slots, wins: Windows
) -> Windowed | None:
    """Return a transposed convolution; without strides, one of mirrored weights."""
    kernel = None
    if set(wins.stride) | set(wins.dilation) == {1}:
        pads = tuple(
            (taps - 1 - before, taps - 1 - after)
            for taps, (before, after) in zip(wins.kernel, wins.pads, strict=True)
        )
        other = Windows(
            wins.count, wins.kernel, wins.stride, (1,) * len(pads), pads, wins.size
        )
        kernel = winograd(session, primitives, slots, other)
    if kernel is None:
        return forward(session, primitives, slots, wins, DECONVOLUTION)
    return kernel


def _session(
    x: Array, other: Array, bias: Array | None, work: int | None = None
) -> Session | None:
    """Return the oneDNN session, None for operands that NumPy computes."""
    rank = x.ndim
    if rank not in _RANKS or other.ndim != rank or not are_multiplied(x, other, bias):
        return None
    if not x.size or not other.size:
        return None
    return current(_work(x, other) if work is None else work)


def _work(x: Array, weight: Array, stride: Any = 1) -> int:
    """Return an estimate of the multiplications: elements times weights per channel.

    A stride divides it.
    """
    rank = x.ndim - 2
    apart = prod(stride) if isinstance(stride, list | tuple) else stride**rank
    work: int = x.size * weight.size // (x.shape[1] * apart)
    return work
