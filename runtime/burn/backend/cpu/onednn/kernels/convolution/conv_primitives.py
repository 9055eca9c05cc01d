"""Prepared convolutions.

Activations are channels-last in memory behind their channels-first shape, the layout of
the library's fastest code; weights are packed. Operands in other layouts are copied
first, because mixed layouts are slow.
"""

from typing import NamedTuple

from burn.backend.cpu.onednn.binding.api import (
    BIAS,
    CONVOLUTION,
    DST,
    INFERENCE,
    SRC,
    WEIGHTS,
    WEIGHTS_MD,
    Api,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import (
    any_layout,
    channels_last,
    is_dense,
    of_array,
    row_major,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32, Arranged
from burn.backend.cpu.onednn.binding.prepared import (
    Description,
    Operands,
    described,
)
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Grouped,
    Slots,
    geometry,
    image,
    long_axes,
    only,
)
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
from burn.backend.cpu.onednn.kernels.convolution.windowed import (
    Arrange,
    DirectConv,
    PackedImagesConv,
    Windowed,
)
from burn.backend.cpu.onednn.kernels.convolution.wrong_code import wrong_code
from burn.backend.cpu.onednn.kernels.post_ops import addend_index, post_ops
from burn.ops.window import Windows


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
        return DirectConv(*given)
    back = side.back(primitives, slots.x.dtype)
    if back is None:
        return None
    return PackedImagesConv(*given, back=back, wide=side.form.shape)


def _row_major(shape: tuple[int, ...]) -> Grouped:
    """Return the shape of float32 weights in row-major order."""
    steps = tuple(FLOAT32.itemsize * step for step in row_major(shape))
    return Grouped(shape, steps, FLOAT32)
