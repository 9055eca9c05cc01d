"""Convolutions with bias, residual and activation as one cuDNN graph.

Depthwise convolutions, which cuDNN does not fuse, are in :mod:`.depthwise`.
"""

from functools import partial
from math import isfinite, prod
from typing import Any

import numpy as np

from burn.backend.cuda.choices import choice_of
from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.convolution import (
    Geometry,
    are_convolved,
    with_geometry,
)
from burn.backend.cuda.kernels.convolution.cudnn_graphs import GRAPHS, Convolution
from burn.backend.cuda.kernels.convolution.depthwise import (
    contiguous,
    conv_or_depthwise,
    depthwise,
)
from burn.backend.cuda.kernels.convolution.layouts import Layout
from burn.backend.cuda.kernels.convolution.patches import are_patches, convolve_patches
from burn.backend.cuda.kernels.elementwise.epilogues import apply_after, has_residual
from burn.backend.cuda.kernels.products.fused_products import linear_then
from burn.backend.cuda.libraries import cudnn, pack_once
from burn.backend.cuda.tuning import is_tuning, quickest
from burn.ops.fused import After, conv_then as conv_then_op
from burn.ops.support import Array

_CHANNELS_LAST = Layout(channels_last=True)
#: The operations of a cuDNN graph for activations without numbers.
_ACTIVATIONS = {
    "relu": "relu",
    "silu": "swish",
    "sigmoid": "sigmoid",
    "gelu": "gelu",
    "gelu_tanh": "gelu_approx_tanh",
}


@conv_then_op.on(Cuda)
def conv_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Compute :func:`burn.ops.fused.conv_then` with one kernel if possible."""
    steps: Any = {"stride": stride, "padding": padding, "dilation": dilation}
    if _is_fused(x, weight, bias) and x.shape[1] == weight.shape[1] * groups:
        image, geometry, shape = with_geometry(x, weight, groups=groups, **steps)
        if has_residual(after) and (residual is None or residual.shape != shape):
            geometry = None
        operands = (image, weight, bias, residual)
        out = None
        if geometry is not None and prod(shape) > 0:
            if groups == x.shape[1] == weight.shape[0] and groups > 1:
                out = depthwise(operands, geometry, shape, after)
            elif groups == 1 and are_patches(geometry):
                out = convolve_patches(image, weight, bias, geometry)
                out = None if out is None else apply_after(out, residual, after)
            elif groups == 1:
                out = _fastest(operands, geometry, shape, after)
        if out is not None:
            return out
    out = conv_or_depthwise(x, weight, bias, groups=groups, **steps)
    return apply_after(out, residual, after)


def _is_fused(x: Array, weight: Array, bias: Array | None) -> bool:
    """Return whether cuDNN's fused tensor core kernels support the operands."""
    if not are_convolved(x, weight, bias):
        return False
    return bool(x.dtype != np.float32 or Cuda(x.device.id).tf32)


def _fastest(
    operands: tuple[Any, ...], geometry: Geometry, shape: tuple[int, ...], after: After
) -> Array | None:
    """Return the result of one graph and an epilogue kernel, None without a graph.

    In plans the number of operations of ``after`` in the graph is measured, and for
    kernels of one tap a matrix product beside it.
    """
    x, _, bias, residual = operands
    prefixes, device = _prefixes(after, residual, x), x.device.id
    if not is_tuning(device):
        return _by_graph(operands, geometry, shape, after, prefixes[0])
    key = ("conv_then", x.dtype, geometry, bias is not None, after, prefixes[0])
    ways = [
        partial(_by_graph, operands, geometry, shape, after, prefix)
        for prefix in prefixes
    ]
    if _is_pointwise(geometry):
        ways.append(partial(_by_product, operands, after))

    def choose() -> int:
        numbers = [n for n, way in enumerate(ways) if way() is not None]
        if len(numbers) > 1:
            return quickest(numbers, lambda number: ways[number](), device)
        return numbers[0] if numbers else -1

    number = choice_of(device, key, len(ways), choose)
    return ways[number]() if number >= 0 else None


def _is_pointwise(geometry: Geometry) -> bool:
    """Return whether each pixel of the result depends on the same one of the image."""
    window = zip(geometry.weight[2:], geometry.stride, geometry.padding, strict=True)
    return all(each == (1, 1, 0) for each in window)


def _by_product(operands: tuple[Any, ...], after: After) -> Array:
    """Return a pointwise convolution as the product of its pixels."""
    x, weight, bias, residual = operands
    pixels, *others = (
        None if array is None else _pixels(_CHANNELS_LAST.of(array))
        for array in (x, residual)
    )
    factors = weight.reshape(weight.shape[:2])
    out = linear_then(pixels, factors, bias, *others, after=after)
    rank, sizes = x.ndim, (x.shape[0], *x.shape[2:], weight.shape[0])
    result: Array = out.reshape(sizes).transpose(0, rank - 1, *range(1, rank - 1))
    return result


def _pixels(array: Array) -> Array:
    """Return the pixels of channels-last images [N, C, *size] as [N * size, C]."""
    rank = array.ndim
    pixels: Array = array.transpose(0, *range(2, rank), 1)
    return pixels.reshape(-1, array.shape[1])


def _by_graph(
    operands: tuple[Any, ...],
    geometry: Geometry,
    shape: tuple[int, ...],
    after: After,
    inside: After,
) -> Array | None:
    """Return the result with the prefix ``inside`` of ``after`` in one graph."""
    x, weight, bias, residual = operands
    device, dtype = x.device.id, x.dtype
    key = ("fused", dtype, geometry, bias is not None, inside)
    tuned = is_tuning(device)
    plan_key = (device, tuned, key)
    graph = GRAPHS.get(
        plan_key,
        lambda: _built(device, *key[1:], key if tuned else None),
    )
    if graph is None:
        return None
    layout = graph.layout
    arrays = [layout.of(x), pack_once(weight, layout, layout.of)]
    if bias is not None:
        arrays.append(contiguous(bias))
    if has_residual(inside):
        arrays.append(layout.of(residual))
    out = layout.empty(shape, dtype)
    if tuned and not graph.tune((*arrays, out), _has_relu(inside)):
        GRAPHS.refuse(plan_key)
        return None
    graph.run(*arrays, out)
    return apply_after(out, residual, after[len(inside) :])


def _prefixes(after: After, residual: Any, x: Array) -> list[After]:
    """Return the prefixes of ``after`` that one graph can compute.

    The first one is a sum or nothing. With an activation the heuristics of cuDNN may
    choose a kernel without tensor cores, or one that loses NaN, so it is for plans,
    which measure and check. cuDNN approximates all activations but ReLU by hardware
    instructions with about eleven bits: enough for results in float16, not in float32.
    """
    count = 0
    if after[:1] == (("add",),) and residual.dtype == x.dtype:
        count = 1
    prefixes = [after[:count]]
    activation = _activation(*after[count]) if after[count:] else None
    if activation is not None and (activation[0] == "relu" or x.dtype != np.float32):
        prefixes.append(after[: count + 1])
    return [*prefixes, ()] if count else prefixes


def _has_relu(after: After) -> bool:
    """Return whether a graph of ``after`` has a ReLU, perhaps with an upper bound."""
    return any((_activation(*step) or ("",))[0] == "relu" for step in after)


def _activation(name: str, *values: float) -> tuple[str, dict[str, float]] | None:
    """Return the operation of a cuDNN graph and its arguments, or None."""
    if name == "clip" and values[0] == 0 and isfinite(values[1]):
        return "relu", {"upper_clip": values[1]}
    operation = _ACTIVATIONS.get(name)
    return None if operation is None or values else (operation, {})


def _built(
    device: int,
    dtype: Any,
    geometry: Geometry,
    biased: bool,
    after: After,
    key: Any,
) -> Convolution | None:
    """Return the graph, None if cuDNN has no plan for it."""
    try:
        return Convolution(
            *(device, dtype, _CHANNELS_LAST),
            lambda builder: _operands(builder, geometry, biased, after),
            key,
        )
    except (RuntimeError, cudnn().cudnnGraphNotSupportedError):
        return None


def _operands(
    builder: Convolution, geometry: Geometry, biased: bool, after: After
) -> tuple[Any, ...]:
    """Return the tensors of a graph, the result last."""
    graph = builder.graph
    image = builder.tensor("image", geometry.image)
    weight = builder.tensor("weight", geometry.weight)
    operands = [image, weight]
    out = graph.conv_fprop(
        image=image,
        weight=weight,
        padding=list(geometry.padding),
        stride=list(geometry.stride),
        dilation=list(geometry.dilation),
    )
    if biased:
        channels = geometry.weight[0]
        shape = (1, channels, *(1 for _ in geometry.stride))
        operands.append(builder.tensor("bias", shape))
        out = graph.bias(name="biased", input=out, bias=operands[-1])
    for name, *values in after:
        if name == "add":
            operands.append(builder.tensor("residual", geometry.result))
            out = graph.add(a=out, b=operands[-1])
        elif (activation := _activation(name, *values)) is not None:
            operation, arguments = activation
            out = getattr(graph, operation)(input=out, **arguments)
    strides = builder.layout.strides(geometry.result)
    out.set_dim(list(geometry.result)).set_stride(list(strides))
    return *operands, out
