"""Convolutions with bias, residual and activation as one cuDNN graph.

Depthwise convolutions, which cuDNN does not fuse, are in :mod:`.depthwise`.
"""

from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.convolution import (
    GRAPHS,
    Convolution,
    Geometry,
    Layout,
    are_convolved,
)
from burn.backend.cuda.kernels.convolution.depthwise import (
    contiguous,
    conv_or_depthwise,
    depthwise,
)
from burn.backend.cuda.kernels.convolution.patches import are_patches, convolved
from burn.backend.cuda.kernels.elementwise.epilogues import apply_after, has_residual
from burn.backend.cuda.libraries import cudnn, packed
from burn.ops.fused import After, conv_then as conv_then_op
from burn.ops.support import Array
from burn.ops.window import windows

_CHANNELS_LAST = Layout(channels_last=True)


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
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    if _is_fused(x, weight, bias) and x.shape[1] == weight.shape[1] * groups:
        wins = windows(x.shape[2:], weight.shape[2:], stride, padding, dilation)
        geometry = Geometry.of(x.shape[0], x.shape[1], weight.shape[0], groups, wins)
        shape = (x.shape[0], weight.shape[0], *wins.count)
        if has_residual(after) and (residual is None or residual.shape != shape):
            geometry = None
        operands = (x, weight, bias, residual)
        out = None
        if geometry is not None and prod(shape):
            if groups == x.shape[1] == weight.shape[0] and groups > 1:
                out = depthwise(operands, geometry, shape, after)
            elif groups == 1 and are_patches(geometry):
                out = convolved(x, weight, bias, geometry)
                out = None if out is None else apply_after(out, residual, after)
            elif groups == 1:
                out = _one_graph(operands, geometry, shape, after)
        if out is not None:
            return out
    out = conv_or_depthwise(x, weight, bias, groups=groups, **steps)
    return apply_after(out, residual, after)


def _is_fused(x: Array, weight: Array, bias: Array | None) -> bool:
    """Return whether cuDNN's fused tensor core kernels support the operands."""
    if not are_convolved(x, weight, bias):
        return False
    return bool(x.dtype != np.float32 or Cuda(x.device.id).tf32)


def _one_graph(
    operands: tuple[Any, ...], geometry: Geometry, shape: tuple[int, ...], after: After
) -> Array | None:
    """Return the result of one graph and an epilogue kernel, None without a graph."""
    x, weight, bias, residual = operands
    device, dtype = x.device.id, x.dtype
    inside = _prefix(after, residual, x)
    key = (device, "fused", dtype, geometry, bias is not None, inside)
    graph = GRAPHS.get(
        key, lambda: _built(device, dtype, geometry, bias is not None, inside)
    )
    if graph is None:
        return None
    layout = graph.layout
    arrays = [layout.of(x), packed(weight, layout, layout.of)]
    if bias is not None:
        arrays.append(contiguous(bias))
    if has_residual(inside):
        arrays.append(layout.of(residual))
    out = layout.empty(shape, dtype)
    graph.run(*arrays, out)
    return apply_after(out, residual, after[len(inside) :])


def _prefix(after: After, residual: Any, x: Array) -> After:
    """Return the prefix of ``after`` that one graph computes fast: a sum, then a ReLU.

    With a clip, the heuristics of cuDNN choose a direct kernel for kernels of one tap,
    which takes longer than one of tensor cores and another one for the clip.
    """
    count = 0
    if after[:1] == (("add",),) and residual.dtype == x.dtype:
        count = 1
    if after[count : count + 1] == (("relu",),):
        count += 1
    return after[:count]


def _built(
    device: int, dtype: Any, geometry: Geometry, biased: bool, after: After
) -> Convolution | None:
    """Return the graph, None if cuDNN has no plan for it."""
    try:
        return Convolution(
            *(device, dtype, _CHANNELS_LAST),
            lambda builder: _operands(builder, geometry, biased, after),
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
    for (name,) in after:
        if name == "add":
            operands.append(builder.tensor("residual", geometry.result))
            out = graph.add(a=out, b=operands[-1])
        else:
            out = graph.relu(input=out)
    strides = builder.layout.strides(geometry.result)
    out.set_dim(list(geometry.result)).set_stride(list(strides))
    return *operands, out
