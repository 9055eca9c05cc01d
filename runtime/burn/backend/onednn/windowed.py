"""Convolutions that are ready to run.

Activations are channels-last in memory behind their channels-first shape, which is the
layout that the library's best code wants; weights are packed. What is not channels-last
is copied first: where layouts are mixed the library has slow code only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from burn.backend.onednn.after import After, added, post_ops
from burn.backend.onednn.api import (
    BIAS,
    CONVOLUTION,
    DIFF_BIAS,
    DIFF_DST,
    DIFF_WEIGHTS,
    DIFF_WEIGHTS_MD,
    DST,
    INFERENCE,
    SRC,
    TRAINING,
    WEIGHTS,
    WEIGHTS_MD,
    Api,
    dims,
)
from burn.backend.onednn.cache import Primitives
from burn.backend.onednn.engine import Session
from burn.backend.onednn.memory import (
    Array,
    Handle,
    address,
    any_layout,
    channels_last,
    empty_channels_last,
    is_dense,
    of_array,
    strided,
)
from burn.backend.onednn.noting import empty
from burn.backend.onednn.operands import FLOAT32, Arranged
from burn.backend.onednn.prepared import (
    Description,
    Operands,
    Prepared,
    described,
)
from burn.backend.onednn.weights import Weights
from burn.ops.window import Windows


@dataclass(frozen=True)
class Grouped:
    """Weights as oneDNN sees them: [O, I, *K], or [G, O/G, I/G, *K] in groups."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of_conv(cls, weight: Array, groups: int) -> "Grouped":
        """Weights [O, I/G, *K]."""
        shape, strides = weight.shape, weight.strides
        if groups == 1:
            return cls(shape, strides)
        outputs = shape[0] // groups
        return cls((groups, outputs, *shape[1:]), (outputs * strides[0], *strides))

    @classmethod
    def of_transpose(cls, weight: Array, groups: int) -> "Grouped":
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
class Slots:
    """The operands of a convolution, and the shape of its result."""

    x: Array
    weight: Grouped
    bias: Array | None
    shape: tuple[int, ...]
    after: After = ()
    residual: Array | None = None
    in_place: bool = False


class Windowed:
    """A convolution, or its transpose, that is ready to run."""

    __slots__ = (
        *("_arranged", "_in_place", "_prepared", "_residual", "_shape", "_weights"),
    )

    def __init__(
        self,
        arranged: Arranged,
        weights: Weights,
        prepared: Prepared,
        shape: Any,
        residual: Arranged | None = None,
        in_place: bool = False,
    ) -> None:
        self._arranged, self._weights = arranged, weights
        self._prepared, self._shape = prepared, shape
        self._residual, self._in_place = residual, in_place

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None = None,
    ) -> Array:
        """The result, channels-last in memory."""
        x = self._arranged(x)
        if residual is not None and self._residual is not None:
            residual = self._residual(residual)
        out = residual if self._in_place else empty_channels_last(self._shape)
        places = [address(x), self._weights.place(weight), address(out)]
        if bias is not None:
            places.append(address(bias))
        if residual is not None and not self._in_place:
            places.append(address(residual))
        self._prepared.run(*places)
        return out


def _long_axes(wins: Windows) -> tuple[int, ...]:
    """The spatial axes that are more than one element, one at least.

    Without the others it is the same convolution, for which there is quicker code.
    """
    kept = [
        axis
        for axis, pad in enumerate(wins.pads)
        if {wins.size[axis], wins.kernel[axis], wins.count[axis]} != {1} or any(pad)
    ]
    return tuple(kept) or (0,)


def _only(
    extents: tuple[int, ...], rank: int, kept: tuple[int, ...]
) -> tuple[int, ...]:
    """``extents`` (or strides) whose last ``rank`` axes are in space, with the kept."""
    first = len(extents) - rank
    return (*extents[:first], *(extents[first + axis] for axis in kept))


def _image(api: Api, shape: tuple[int, ...]) -> Handle:
    return strided(api, shape, channels_last(shape))


def _geometry(wins: Windows, kept: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Strides, dilations and padding as oneDNN wants them; it cannot crop."""
    if any(before < 0 for before, _ in wins.pads) or 0 in (*wins.count, *wins.size):
        return None
    return (
        dims(wins.stride[axis] for axis in kept),
        dims(wins.dilation[axis] - 1 for axis in kept),
        dims(wins.pads[axis][0] for axis in kept),
        dims(wins.pads[axis][1] for axis in kept),
    )


def forward(
    session: Session, primitives: Primitives, slots: Slots, wins: Windows, kind: int
) -> Windowed | None:
    """A convolution or, by its ``kind``, a transposed one; None if there is none."""
    api, x, bias, shape = primitives.api, slots.x, slots.bias, slots.shape
    kept = _long_axes(wins)
    geometry = _geometry(wins, kept)
    if geometry is None or not is_dense(slots.weight):
        return None
    if bias is not None and (bias.shape != (shape[1],) or not is_dense(bias)):
        return None
    rank, weight = len(wins.size), slots.weight
    source, target = (_image(api, _only(s, rank, kept)) for s in (x.shape, shape))
    view = Grouped(*(_only(s, rank, kept) for s in (weight.shape, weight.strides)))
    shift = None if bias is None else of_array(api, bias.shape, bias.strides)
    name = "convolution" if kind == CONVOLUTION else "deconvolution"
    found = described(
        *(api, f"{name}_forward", api.engine, INFERENCE, kind),
        *(source, any_layout(api, view.shape)),
        *(shift, target, *geometry),
        post=post_ops(api, slots.after, None if slots.in_place else target),
    )
    if found is None:
        return None
    weights = _weights(session, primitives, view, found)
    if weights is None:
        return None
    operands: Operands = [(SRC, source), (WEIGHTS, found.lent(WEIGHTS_MD))]
    operands.append((DST, target))
    if shift is not None:
        operands.append((BIAS, shift))
    residual = None
    if slots.residual is not None:
        if not slots.in_place:
            operands.append((added(slots.after), target))
        residual = Arranged(primitives, slots.residual, channels_last(shape))
    arranged = Arranged(primitives, x, channels_last(x.shape))
    prepared = primitives.prepared(found, operands)
    return Windowed(arranged, weights, prepared, shape, residual, slots.in_place)


def _weights(
    session: Session, primitives: Primitives, view: Grouped, found: Description
) -> Weights | None:
    given = of_array(primitives.api, view.shape, view.strides)
    form = (view.shape, view.strides)
    return Weights(primitives, session.packed, given, form, found, WEIGHTS_MD)


class WeightGrad:
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

    def run(self, x: Array, grad: Array, bias: Array | None = None) -> Array:
        """The gradient, row-major; that of the bias goes to ``bias``."""
        x, grad = self._x(x), self._grad(grad)
        out = empty(self._shape)
        memory = out
        if self._reorder is not None:
            memory = empty((-(-self._size // FLOAT32.itemsize),))
        more = () if bias is None else (address(bias),)
        self._prepared.run(address(x), address(grad), address(memory), *more)
        if self._reorder is not None:
            self._reorder.run(address(memory), address(out))
        return out


def weight_grad(
    primitives: Primitives,
    x: Array,
    grad: Array,
    wins: Windows,
    groups: int,
    biased: bool,
) -> WeightGrad | None:
    """The gradient of weights of a convolution, and of its bias if it is ``biased``."""
    api, kept = primitives.api, tuple(range(len(wins.size)))
    geometry = _geometry(wins, kept)
    if geometry is None:
        return None
    shape = (grad.shape[1], x.shape[1] // groups, *wins.kernel)
    out: Array = np.empty(shape, np.float32)
    view = Grouped.of_conv(out, groups)
    source, outer = _image(api, x.shape), _image(api, grad.shape)
    chosen = any_layout(api, view.shape)
    line = strided(api, (shape[0],), (1,)) if biased else None
    hint = described(
        *(api, "convolution_forward", api.engine, TRAINING, CONVOLUTION),
        *(source, chosen, line, outer, *geometry),
    )
    found = hint and described(
        *(api, "convolution_backward_weights", api.engine, CONVOLUTION),
        *(source, chosen, line, outer, *geometry, hint.handle),
    )
    if found is None:
        return None
    wanted = found.lent(DIFF_WEIGHTS_MD)
    operands: Operands = [(SRC, source), (DIFF_DST, outer), (DIFF_WEIGHTS, wanted)]
    if line is not None:
        operands.append((DIFF_BIAS, line))
    made = WeightGrad(
        Arranged(primitives, x, channels_last(x.shape)),
        Arranged(primitives, grad, channels_last(grad.shape)),
        primitives.prepared(found, operands),
        shape,
    )
    plain = of_array(api, view.shape, view.strides)
    if not api.same(plain, wanted):
        made.unpack(primitives.reorder(wanted, plain), api.size_of(wanted))
    return made
