"""Prepared convolutions.

Activations are channels-last in memory behind their channels-first shape, the layout of
the library's fastest code; weights are packed. Operands in other layouts are copied
first, because mixed layouts are slow.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    BIAS,
    CONVOLUTION,
    DST,
    INFERENCE,
    SRC,
    WEIGHTS,
    WEIGHTS_MD,
    Api,
    dims,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    address,
    any_layout,
    channels_last,
    empty_channels_last,
    is_dense,
    of_array,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32, Arranged
from burn.backend.cpu.onednn.binding.prepared import (
    Description,
    Operands,
    Prepared,
    described,
)
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.backend.cpu.onednn.kernels.convolution.faster_code import faster_code
from burn.backend.cpu.onednn.kernels.convolution.pack_width import (
    PackedWidth,
    packed_width,
)
from burn.backend.cpu.onednn.kernels.convolution.rebatch import Form, rebatched
from burn.backend.cpu.onednn.kernels.convolution.space_to_depth import (
    DIRECT,
    SpaceToDepth,
    space_to_depth,
)
from burn.backend.cpu.onednn.kernels.convolution.wrong_code import wrong_code
from burn.backend.cpu.onednn.kernels.post_ops import After, addend_index, post_ops
from burn.ops.window import Windows

#: A conversion of an operand to the required layout.
Arrange: TypeAlias = Callable[[Array], Array]


class Grouped(NamedTuple):
    """Weights in oneDNN's shape: [O, I, *K], or [G, O/G, I/G, *K] in groups."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def along(self, wins: Windows) -> "Grouped":
        """Return the weights without spatial axes of extent 1."""
        rank, axes = len(wins.size), long_axes(wins)
        extents, steps = (only(s, rank, axes) for s in (self.shape, self.strides))
        return Grouped(extents, steps, self.dtype)

    @classmethod
    def of_conv(cls, weight: Array, groups: int) -> "Grouped":
        """Return weights [O, I/G, *K] in groups."""
        shape, strides, dtype = weight.shape, weight.strides, weight.dtype
        if groups == 1:
            return cls(shape, strides, dtype)
        outputs = shape[0] // groups
        steps = (outputs * strides[0], *strides)
        return cls((groups, outputs, *shape[1:]), steps, dtype)

    @classmethod
    def of_transpose(cls, weight: Array, groups: int) -> "Grouped":
        """Return weights [I, O/G, *K] in groups."""
        (inputs, outputs, *kernel), (first, second, *rest) = (
            weight.shape,
            weight.strides,
        )
        within, dtype = inputs // groups, weight.dtype
        if groups == 1:
            return cls((outputs, inputs, *kernel), (second, first, *rest), dtype)
        extents = (groups, outputs, within, *kernel)
        return cls(extents, (within * first, second, first, *rest), dtype)


class Slots(NamedTuple):
    """The operands of a convolution, and the shape of its result.

    It is ``planned`` if it is part of a plan; its weights are ``constant`` if they are
    the same in each run and need no gradients. They are ``mirrored`` in space for a
    transposed convolution.
    """

    x: Array
    weight: Grouped
    bias: Array | None
    shape: tuple[int, ...]
    after: After = ()
    residual: Array | None = None
    in_place: bool = False
    planned: bool = False
    constant: bool = False
    mirrored: bool = False

    @property
    def has_plain_bias(self) -> bool:
        """Return whether the bias is absent, or dense with one number per channel."""
        bias = self.bias
        return bias is None or (bias.shape == self.shape[1:2] and is_dense(bias))


class Windowed:
    """A prepared convolution or transposed convolution."""

    __slots__ = ("_arranged", "_in_place", "_prepared", "_residual", "_shape")

    def __init__(
        self,
        primitives: Primitives,
        slots: Slots,
        arranged: Arrange,
        prepared: Prepared,
    ) -> None:
        self._arranged, self._prepared = arranged, prepared
        self._shape, self._in_place = slots.shape, slots.in_place
        self._residual: Arranged | None = None
        if slots.residual is not None:
            last = channels_last(slots.shape)
            self._residual = Arranged(primitives, slots.residual, last)

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
        """Return the result, channels-last in memory."""
        x = self._arranged(x)
        if residual is not None and self._residual is not None:
            residual = self._residual(residual)
        out = residual
        if self._in_place:
            residual = None
        else:
            out = empty_channels_last(self._shape, x.dtype)
        self._compute(x, weight, bias, residual, out)
        return out

    def _compute(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None,
        out: Array,
    ) -> None:
        """Write the result to ``out``, which has the addend if ``residual`` is None."""
        raise NotImplementedError


class _Direct(Windowed):
    """A convolution by a single primitive."""

    __slots__ = ("_weights",)

    def __init__(
        self,
        primitives: Primitives,
        slots: Slots,
        arranged: Arrange,
        prepared: Prepared,
        weights: Weights,
    ) -> None:
        super().__init__(primitives, slots, arranged, prepared)
        self._weights = weights

    def _compute(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None,
        out: Array,
    ) -> None:
        places = [address(x), self._weights.place(weight), address(out)]
        places += [address(given) for given in (bias, residual) if given is not None]
        self._prepared.run(*places)


class _PackedImages(_Direct):
    """A convolution of images that are packed side by side, as is its result."""

    __slots__ = ("_back", "_wide")

    def __init__(self, *given: Any, back: Prepared, wide: tuple[int, ...]) -> None:
        super().__init__(*given)
        self._back, self._wide = back, wide

    def _compute(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None,
        out: Array,
    ) -> None:
        result = empty_channels_last(self._wide, x.dtype)
        super()._compute(x, weight, bias, residual, result)
        self._back.run(address(result), address(out))


def long_axes(wins: Windows) -> tuple[int, ...]:
    """Return the spatial axes with more than one element, at least one axis.

    Without the other axes the convolution is the same and has faster code.
    """
    axes = [
        axis
        for axis, pad in enumerate(wins.pads)
        if {wins.size[axis], wins.kernel[axis], wins.count[axis]} != {1} or any(pad)
    ]
    return tuple(axes) or (0,)


def only(extents: tuple[int, ...], rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``extents`` (or strides) with only these of the spatial axes."""
    first = len(extents) - rank
    return (*extents[:first], *(extents[first + axis] for axis in axes))


def image(api: Api, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Handle:
    return strided(api, shape, channels_last(shape), dtype)


def geometry(wins: Windows, axes: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return strides, dilations and padding for oneDNN; None for negative padding."""
    if any(before < 0 for before, _ in wins.pads) or 0 in (*wins.count, *wins.size):
        return None
    return (
        dims(wins.stride[axis] for axis in axes),
        dims(wins.dilation[axis] - 1 for axis in axes),
        dims(wins.pads[axis][0] for axis in axes),
        dims(wins.pads[axis][1] for axis in axes),
    )


def forward(
    session: Session, primitives: Primitives, slots: Slots, wins: Windows, kind: int
) -> Windowed | None:
    """Return a convolution or, by ``kind``, a transposed one; None if unsupported."""
    fold = kernel = None
    flat = len(slots.weight.shape) == slots.x.ndim
    if slots.constant and flat and not slots.mirrored:
        fold = space_to_depth(slots.x, slots.shape[1], wins)
    if fold is not None and not _is_fast_as_it_is(primitives.api, slots, wins, kind):
        kernel = _forward(session, primitives, slots, fold.wins, kind, fold)
    if kernel is None and is_dense(slots.weight):
        kernel = _forward(session, primitives, slots, wins, kind)
    return kernel


def _is_fast_as_it_is(api: Api, slots: Slots, wins: Windows, kind: int) -> bool:
    """Return whether the library has fast code for an image of few channels."""
    form = Form(slots.x.shape, slots.shape, wins)
    choice = _describe(api, slots, form, slots.weight, kind)
    return choice is not None and choice.description.implementation in DIRECT


def _forward(
    session: Session,
    primitives: Primitives,
    slots: Slots,
    wins: Windows,
    kind: int,
    fold: SpaceToDepth | None = None,
) -> Windowed | None:
    if not slots.has_plain_bias:
        return None
    view = slots.weight if fold is None else _row_major(fold.weight)
    form = Form(slots.x.shape if fold is None else fold.x, slots.shape, wins)
    description = _describe(primitives.api, slots, form, view, kind)
    if description is None:
        return None
    if kind == CONVOLUTION and len(view.shape) == len(form.x):
        name, threads = description.description.implementation, primitives.api.threads
        side = None
        if slots.planned and fold is None and slots.residual is None:
            side = packed_width(form, name)
        other = rebatched(form, name, threads) if side is None else side.form
        regrouped = other and _describe(primitives.api, slots, other, view, kind)
        ready = regrouped and _ready(session, primitives, slots, regrouped, fold, side)
        if ready is not None:
            return ready
    return _ready(session, primitives, slots, description, fold)


class ConvDescription(NamedTuple):
    """A description of a convolution, with the grouped weights."""

    description: Description
    operands: Operands
    weight: Grouped


def _describe(
    api: Api, slots: Slots, form: Form, weight: Grouped, kind: int
) -> ConvDescription | None:
    """Return the description of a convolution in some form."""
    axes, rank = long_axes(form.wins), len(form.wins.size)
    where = geometry(form.wins, axes)
    if where is None:
        return None
    x, shape = (only(extents, rank, axes) for extents in (form.x, form.shape))
    source, target = (image(api, extents, slots.x.dtype) for extents in (x, shape))
    bias, residual = slots.bias, slots.residual
    view = weight.along(form.wins)
    shift = None if bias is None else of_array(api, bias)
    other = target if residual is None else image(api, shape, residual.dtype)
    name = "convolution" if kind == CONVOLUTION else "deconvolution"
    description = described(
        *(api, f"{name}_forward", api.engine, INFERENCE, kind),
        *(source, any_layout(api, view.shape, view.dtype)),
        *(shift, target, *where),
        post=post_ops(api, slots.after, None if slots.in_place else other),
        is_wrong=wrong_code(form.wins),
        faster=faster_code(slots.weight.shape, form.wins),
    )
    if description is None:
        return None
    operands: Operands = [(SRC, source), (WEIGHTS, description.descriptor(WEIGHTS_MD))]
    operands.append((DST, target))
    if shift is not None:
        operands.append((BIAS, shift))
    if residual is not None and not slots.in_place:
        operands.append((addend_index(slots.after), other))
    return ConvDescription(description, operands, view)


def _ready(
    session: Session,
    primitives: Primitives,
    slots: Slots,
    choice: ConvDescription,
    fold: SpaceToDepth | None,
    side: PackedWidth | None = None,
) -> Windowed | None:
    """Return the convolution of a choice, with the reorders of its operands."""
    view = choice.weight
    form = (view.shape, view.strides)
    weights = Weights(
        *(primitives, session.packed, of_array(primitives.api, view), form),
        *(choice.description, WEIGHTS_MD),
        arrange=None if fold is None else fold.weights,
    )
    arranged: Arrange | None
    way = fold or side
    if way is None:
        arranged = Arranged(primitives, slots.x, channels_last(slots.x.shape))
    else:
        arranged = way.image(primitives, slots.x)
    if arranged is None:
        return None
    prepared = primitives.prepared(choice.description, choice.operands)
    given = (primitives, slots, arranged, prepared, weights)
    if side is None:
        return _Direct(*given)
    back = side.back(primitives, slots.x.dtype)
    if back is None:
        return None
    return _PackedImages(*given, back=back, wide=side.form.shape)


def _row_major(shape: tuple[int, ...]) -> Grouped:
    """Return the shape of float32 weights in row-major order."""
    steps = tuple(FLOAT32.itemsize * step for step in row_major(shape))
    return Grouped(shape, steps, FLOAT32)
