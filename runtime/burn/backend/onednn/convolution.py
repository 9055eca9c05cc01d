"""Convolutions, their transposes and the gradients of their weights by oneDNN.

Activations are channels-last in memory behind their channels-first shape, which is the
layout that the library's best code wants; weights are packed. What is not channels-last
is copied first: where layouts are mixed the library has slow code only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from burn.backend.cpu import Cpu
from burn.backend.onednn.api import (
    BIAS,
    CONVOLUTION,
    DECONVOLUTION,
    DIFF_DST,
    DIFF_WEIGHTS,
    DIFF_WEIGHTS_MD,
    DST,
    INFERENCE,
    SRC,
    TRAINING,
    WEIGHTS,
    WEIGHTS_MD,
    dims,
)
from burn.backend.onednn.cache import Primitives
from burn.backend.onednn.engine import Session, current, limits
from burn.backend.onednn.memory import (
    Array,
    address,
    any_layout,
    channels_last,
    empty_channels_last,
    is_dense,
    of_array,
    strided,
)
from burn.backend.onednn.operands import Arranged, are_float32, form, frozen
from burn.backend.onednn.prepared import (
    Description,
    Operands,
    Prepared,
    described,
)
from burn.backend.onednn.scratch import Block
from burn.backend.onednn.weights import Weights
from burn.ops.conv import (
    conv as conv_op,
    conv_transpose as conv_transpose_op,
    conv_weight_grad as conv_weight_grad_op,
)
from burn.ops.window import Windows, transposed, windows

_RANKS = (3, 4, 5)


@conv_op.on(Cpu)
def conv(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """:func:`burn.ops.conv` by oneDNN where that pays, by NumPy elsewhere."""
    session = _session(x, weight, bias)
    if session is not None:
        steps = (stride, padding, dilation)

        def make(primitives: Primitives) -> "_Windowed | None":
            if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
                return None  # NumPy's kernel says what is wrong
            wins = windows(x.shape[2:], weight.shape[2:], *steps)
            shape = (x.shape[0], weight.shape[0], *wins.count)
            view = _Grouped.of_conv(weight, groups)
            slots = _Slots(x, view, bias, shape)
            return _forward(session, primitives, slots, wins, CONVOLUTION)

        key = frozen(("conv", groups, steps, form(x), form(weight), form(bias)))
        found = session.primitives.get(key, make, _work(x, weight))
        if found is not None:
            return found.run(x, weight, bias)
    return conv_op.kernel(
        *(x, weight, bias),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


@conv_transpose_op.on(Cpu)
def conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """:func:`burn.ops.conv_transpose` by oneDNN where that pays, else by NumPy."""
    session = _session(x, weight, bias)
    if session is not None:
        steps = (stride, padding, output_padding, dilation)

        def make(primitives: Primitives) -> "_Windowed | None":
            if x.shape[1] != weight.shape[0] or x.shape[1] % groups:
                return None
            wins = transposed(x.shape[2:], weight.shape[2:], *steps)
            shape = (x.shape[0], weight.shape[1] * groups, *wins.size)
            view = _Grouped.of_transpose(weight, groups)
            slots = _Slots(x, view, bias, shape)
            return _forward(session, primitives, slots, wins, DECONVOLUTION)

        key = frozen(("deconv", groups, steps, form(x), form(weight), form(bias)))
        found = session.primitives.get(key, make, _work(x, weight))
        if found is not None:
            return found.run(x, weight, bias)
    return conv_transpose_op.kernel(
        *(x, weight, bias),
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
    )


@conv_weight_grad_op.on(Cpu)
def conv_weight_grad(
    x: Array,
    grad: Array,
    *,
    kernel_size: tuple[int, ...],
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """:func:`burn.ops.conv_weight_grad` by oneDNN where that pays, else by NumPy."""
    session = _session(x, grad, None)
    if session is not None:
        steps = (stride, padding, dilation)

        def make(primitives: Primitives) -> "_WeightGrad | None":
            if x.shape[1] % groups or grad.shape[1] % groups:
                return None
            wins = windows(x.shape[2:], kernel_size, *steps)
            if wins.count != grad.shape[2:] or x.shape[0] != grad.shape[0]:
                return None
            return _weight_grad(primitives, x, grad, wins, groups)

        key = frozen(("grad", groups, steps, kernel_size, form(x), form(grad)))
        found = session.primitives.get(key, make, _work(x, grad))
        if found is not None:
            return found.run(x, grad)
    return conv_weight_grad_op.kernel(
        *(x, grad),
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def _session(x: Array, other: Array, bias: Array | None) -> Session | None:
    """The session if operands are such that it can and should compute."""
    rank = x.ndim
    if rank not in _RANKS or other.ndim != rank or not are_float32(x, other, bias):
        return None
    if not x.size or not other.size or _work(x, other) < limits().convolution:
        return None
    return current()


def _work(x: Array, other: Array) -> int:
    """About how many products: an element meets each weight of its channel once."""
    work: int = x.size * other.size // x.shape[1]
    return work


@dataclass(frozen=True)
class _Grouped:
    """Weights as oneDNN sees them: [O, I, *K], or [G, O/G, I/G, *K] in groups."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of_conv(cls, weight: Array, groups: int) -> "_Grouped":
        """Weights [O, I/G, *K]."""
        shape, strides = weight.shape, weight.strides
        if groups == 1:
            return cls(shape, strides)
        outputs = shape[0] // groups
        return cls((groups, outputs, *shape[1:]), (outputs * strides[0], *strides))

    @classmethod
    def of_transpose(cls, weight: Array, groups: int) -> "_Grouped":
        """Weights [I, O/G, *K]."""
        (inputs, outputs, *kernel), (first, second, *rest) = (
            weight.shape,
            weight.strides,
        )
        within = inputs // groups
        if groups == 1:
            return cls((outputs, inputs, *kernel), (second, first, *rest))
        return cls(
            (groups, outputs, within, *kernel), (within * first, second, first, *rest)
        )


@dataclass(frozen=True)
class _Slots:
    """The operands of a convolution, and the shape of its result."""

    x: Array
    weight: _Grouped
    bias: Array | None
    shape: tuple[int, ...]


class _Windowed:
    """A convolution, or its transpose, that is ready to run."""

    __slots__ = ("_arranged", "_prepared", "_shape", "_weights")

    def __init__(
        self, arranged: Arranged, weights: Weights, prepared: Prepared, shape: Any
    ) -> None:
        self._arranged, self._weights = arranged, weights
        self._prepared, self._shape = prepared, shape

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, x: Array, weight: Array, bias: Array | None) -> Array:
        """The result, channels-last in memory."""
        x = self._arranged(x)
        out = empty_channels_last(self._shape)
        places = (address(x), self._weights.place(weight), address(out))
        if bias is None:
            self._prepared.run(*places)
        else:
            self._prepared.run(*places, address(bias))
        return out


def _geometry(wins: Windows) -> tuple[Any, ...] | None:
    """Strides, dilations and padding as oneDNN wants them; it cannot crop."""
    if any(before < 0 for before, _ in wins.pads) or 0 in (*wins.count, *wins.size):
        return None
    return (
        dims(wins.stride),
        dims(step - 1 for step in wins.dilation),
        dims(before for before, _ in wins.pads),
        dims(after for _, after in wins.pads),
    )


def _forward(
    session: Session, primitives: Primitives, slots: _Slots, wins: Windows, kind: int
) -> _Windowed | None:
    api, x, bias, shape = primitives.api, slots.x, slots.bias, slots.shape
    geometry = _geometry(wins)
    if geometry is None or not is_dense(slots.weight):
        return None
    if bias is not None and (bias.shape != (shape[1],) or not is_dense(bias)):
        return None
    source = strided(api, x.shape, channels_last(x.shape))
    target = strided(api, shape, channels_last(shape))
    shift = None if bias is None else of_array(api, bias.shape, bias.strides)
    name = "convolution" if kind == CONVOLUTION else "deconvolution"
    found = described(
        *(api, f"{name}_forward", api.engine, INFERENCE, kind),
        *(source, any_layout(api, slots.weight.shape)),
        *(shift, target, *geometry),
    )
    if found is None:
        return None
    weights = _weights(session, primitives, slots.weight, found)
    if weights is None:
        return None
    operands: Operands = [(SRC, source), (WEIGHTS, found.lent(WEIGHTS_MD))]
    operands.append((DST, target))
    if shift is not None:
        operands.append((BIAS, shift))
    arranged = Arranged(primitives, x, channels_last(x.shape))
    prepared = primitives.prepared(found, operands)
    return _Windowed(arranged, weights, prepared, shape)


def _weights(
    session: Session, primitives: Primitives, view: _Grouped, found: Description
) -> Weights | None:
    given = of_array(primitives.api, view.shape, view.strides)
    form = (view.shape, view.strides)
    return Weights(primitives, session.packed, given, form, found, WEIGHTS_MD)


class _WeightGrad:
    """The gradient of a convolution's weights, ready to run."""

    __slots__ = ("_grad", "_prepared", "_reorder", "_shape", "_size", "_x")

    def __init__(
        self, x: Arranged, grad: Arranged, prepared: Prepared, shape: Any
    ) -> None:
        self._x, self._grad, self._prepared, self._shape = x, grad, prepared, shape
        self._reorder: Prepared | None = None
        self._size = 0

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def unpack(self, reorder: Prepared | None, size: int) -> None:
        """Compute in a layout of ``size`` bytes first, and copy it with ``reorder``."""
        self._reorder, self._size = reorder, size

    def run(self, x: Array, grad: Array) -> Array:
        """The gradient, row-major."""
        x, grad = self._x(x), self._grad(grad)
        out: Array = np.empty(self._shape, np.float32)
        if self._reorder is None:
            self._prepared.run(address(x), address(grad), address(out))
            return out
        block = Block(self._size)
        self._prepared.run(address(x), address(grad), block.address)
        self._reorder.run(block.address, address(out))
        return out


def _weight_grad(
    primitives: Primitives, x: Array, grad: Array, wins: Windows, groups: int
) -> _WeightGrad | None:
    api, geometry = primitives.api, _geometry(wins)
    if geometry is None:
        return None
    shape = (grad.shape[1], x.shape[1] // groups, *wins.kernel)
    out: Array = np.empty(shape, np.float32)
    view = _Grouped.of_conv(out, groups)
    source = strided(api, x.shape, channels_last(x.shape))
    outer = strided(api, grad.shape, channels_last(grad.shape))
    chosen = any_layout(api, view.shape)
    hint = described(
        *(api, "convolution_forward", api.engine, TRAINING, CONVOLUTION),
        *(source, chosen, None, outer, *geometry),
    )
    found = hint and described(
        *(api, "convolution_backward_weights", api.engine, CONVOLUTION),
        *(source, chosen, None, outer, *geometry, hint.handle),
    )
    if found is None:
        return None
    wanted = found.lent(DIFF_WEIGHTS_MD)
    operands: Operands = [(SRC, source), (DIFF_DST, outer), (DIFF_WEIGHTS, wanted)]
    made = _WeightGrad(
        Arranged(primitives, x, channels_last(x.shape)),
        Arranged(primitives, grad, channels_last(grad.shape)),
        primitives.prepared(found, operands),
        shape,
    )
    plain = of_array(api, view.shape, view.strides)
    if not api.same(plain, wanted):
        made.unpack(primitives.reorder(wanted, plain), api.size_of(wanted))
    return made
