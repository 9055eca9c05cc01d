"""Int8 convolutions and linear layers with oneDNN."""

from typing import Any

from burn.backend.cpu.blas import integers
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import CONVOLUTION, INFERENCE, Api
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import compact
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    any_layout,
    channels_last,
    is_dense,
    of_array,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32, Arranged
from burn.backend.cpu.onednn.binding.prepared import described
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Grouped,
    geometry,
    image,
    long_axes,
    only,
)
from burn.backend.cpu.onednn.kernels.convolution.conv_primitives import (
    ConvDescription,
)
from burn.backend.cpu.onednn.kernels.convolution.rebatch import Form, rebatched
from burn.backend.cpu.onednn.kernels.convolution.wrong_code import wrong_code
from burn.backend.cpu.onednn.kernels.post_ops import After
from burn.backend.cpu.onednn.kernels.quantization.quantized import (
    Layer,
    QuantizedOperands,
    epilogue_of,
    may_be_in_place,
    operands_of,
    scalings_of,
    session_for,
    weights_of,
)
from burn.backend.cpu.onednn.kernels.quantization.rounding import is_shifted
from burn.dtypes import DType
from burn.ops.qdq_layers import (
    Integers,
    Limits,
    Scaling,
    conv_of_integers as conv_of_integers_op,
    limited,
    linear_of_integers as linear_of_integers_op,
)
from burn.ops.window import windows

_RANKS = (3, 4, 5)


@conv_of_integers_op.on(Cpu)
def conv_of_integers(
    x: Integers,
    weight: Integers,
    bias: Array | None = None,
    residual: Any = None,
    result: Scaling | None = None,
    limits: Limits | None = None,
    *,
    after: After = (),
    dtype: DType = FLOAT32,
    **static: Any,
) -> Array:
    """Compute :func:`burn.ops.qdq_layers.conv_of_integers` with oneDNN if supported."""
    done = limited(after, limits)
    layer = QuantizedOperands(x, weight, bias, residual, result, dtype, done)
    session = session_for(layer)
    if is_shifted(weight[2]) or x[0].ndim not in _RANKS or not x[0].size:
        session = None
    if session is not None:
        in_place = may_be_in_place(layer)

        def make(primitives: Primitives) -> "Layer | None":
            return _conv(session, primitives, layer, static, in_place)

        key = ("conv of integers", *layer.key(), tuple(static.items()), in_place)
        work = x[0].size * weight[0].size // x[0].shape[1]
        kernel: Layer | None = session.primitives.get(key, make, work)
        if kernel is not None:
            return kernel.run(layer)
    return conv_of_integers_op.kernel(
        *(x, weight, bias, residual, result, limits), after=after, dtype=dtype, **static
    )


@linear_of_integers_op.on(Cpu)
def linear_of_integers(
    x: Integers,
    weight: Integers,
    bias: Array | None = None,
    residual: Any = None,
    result: Scaling | None = None,
    limits: Limits | None = None,
    *,
    after: After = (),
    dtype: DType = FLOAT32,
) -> Array:
    """Compute :func:`burn.ops.qdq_layers.linear_of_integers` with oneDNN.

    On a processor without instructions for bytes a generated kernel does, or NumPy.
    """
    done = limited(after, limits)
    layer = QuantizedOperands(x, weight, bias, residual, result, dtype, done)
    session = session_for(layer)
    if session is not None and x[0].ndim and x[0].size:
        layer = layer._replace(x=(compact(x[0]), *x[1:]))
        in_place = may_be_in_place(layer)

        def make(primitives: Primitives) -> "Layer | None":
            return _linear(session, primitives, layer, in_place)

        key = ("linear of integers", *layer.key(), in_place)
        work = x[0].size * len(weight[0])
        kernel: Layer | None = session.primitives.get(key, make, work)
        if kernel is not None:
            return kernel.run(layer)
    return integers.linear_of_integers(
        *(x, weight, bias, residual, result, limits), after=after, dtype=dtype
    )


def _conv(
    session: Session,
    primitives: Primitives,
    layer: QuantizedOperands,
    static: Any,
    in_place: bool,
) -> Layer | None:
    """Return a prepared convolution, None if unsupported."""
    x, weight = layer.x[0], layer.weight[0]
    groups = static.get("groups", 1)
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        return None
    steps = {name: static[name] for name in static if name != "groups"}
    wins = windows(x.shape[2:], weight.shape[2:], **steps)
    if not is_dense(weight):
        return None
    api, shape = primitives.api, (x.shape[0], weight.shape[0], *wins.count)
    form, whole = Form(x.shape, shape, wins), Grouped.of_conv(weight, groups)
    choice = _describe(api, layer, form, whole)
    if choice is None:
        return None
    other = rebatched(form, choice.description.implementation, api.threads)
    if other is not None and groups == 1:
        choice = _describe(api, layer, other, whole) or choice
    arranged = Arranged(primitives, x, channels_last(x.shape))
    added = layer.residual[0] if isinstance(layer.residual, tuple) else layer.residual
    residual = None
    if added is not None:
        residual = Arranged(primitives, added, channels_last(shape))
    order = (0, *range(2, len(shape)), 1)
    weights = weights_of(session, primitives, choice.weight, choice.description)
    prepared = primitives.prepared(choice.description, choice.operands)
    return Layer(prepared, weights, (shape, order), (arranged, residual), in_place)


def _describe(
    api: Api, layer: QuantizedOperands, form: Form, whole: Grouped
) -> ConvDescription | None:
    """Return the description of a convolution in some form."""
    axes, rank = long_axes(form.wins), len(form.wins.size)
    where = geometry(form.wins, axes)
    if where is None:
        return None
    x, out = (only(extents, rank, axes) for extents in (form.x, form.shape))
    source, target = image(api, x, layer.x[0].dtype), image(api, out, layer.dtype)
    other = image(api, out, FLOAT32)
    view = whole.along(form.wins)
    scalings = scalings_of(layer, 1 if len(view.shape) == len(x) else 3)
    bias = None if layer.bias is None else of_array(api, layer.bias)
    description = described(
        *(api, "convolution_forward", api.engine, INFERENCE, CONVOLUTION, source),
        *(any_layout(api, view.shape, view.dtype), bias, target, *where),
        post=epilogue_of(api, layer, other),
        scalings=scalings,
        is_wrong=wrong_code(form.wins),
    )
    if description is None:
        return None
    parts = (source, description, target, other, bias)
    return ConvDescription(description, operands_of(layer, parts, api, scalings), view)


def _linear(
    session: Session, primitives: Primitives, layer: QuantizedOperands, in_place: bool
) -> Layer | None:
    """Return a prepared linear layer, None if unsupported."""
    x, weight = layer.x[0], layer.weight[0]
    if weight.ndim != 2 or x.shape[-1] != weight.shape[1] or not is_dense(weight):
        return None
    api, (outputs, width) = primitives.api, weight.shape
    shape, rows = (*x.shape[:-1], outputs), x.size // width
    source = strided(api, (rows, width), (width, 1), x.dtype)
    target = strided(api, (rows, outputs), (outputs, 1), layer.dtype)
    other = strided(api, (rows, outputs), (outputs, 1))
    bias = None
    if layer.bias is not None:
        bias = strided(api, (1, outputs), (outputs, 1))
    scalings = scalings_of(layer, 2)
    turned = weight.T
    description = described(
        *(api, "matmul", api.engine, source),
        *(any_layout(api, turned.shape, turned.dtype), bias, target),
        post=epilogue_of(api, layer, other),
        scalings=scalings,
    )
    if description is None:
        return None
    view = Grouped(turned.shape, turned.strides, turned.dtype)
    order, added = tuple(range(len(shape))), layer.residual
    residual = None
    if added is not None:
        numbers = added[0] if isinstance(added, tuple) else added
        residual = Arranged(primitives, numbers, row_major(shape))
    operands = operands_of(
        layer, (source, description, target, other, bias), api, scalings
    )
    weights = weights_of(session, primitives, view, description)
    prepared = primitives.prepared(description, operands)
    return Layer(prepared, weights, (shape, order), (None, residual), in_place)
