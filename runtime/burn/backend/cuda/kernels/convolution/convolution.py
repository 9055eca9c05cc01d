"""Convolutions, transposed convolutions and weight gradients with cuDNN.

Tensor cores read images and weights channels-last, other kernels row-major. Operands in
another layout are copied; results keep the layout, so that sequences of convolutions
copy only weights.
"""

import warnings
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.cudnn_graphs import (
    GRAPHS,
    TYPES,
    Convolution,
)
from burn.backend.cuda.kernels.convolution.layouts import Layout, Shape
from burn.backend.cuda.libraries import cudnn, pack_once
from burn.backend.cuda.tuning import is_tuning
from burn.ops.conv import (
    conv as conv_op,
    conv_transpose as conv_transpose_op,
    conv_weight_grad as conv_weight_grad_op,
)
from burn.ops.padding import pad as pad_op
from burn.ops.support import Array
from burn.ops.window import Windows, transposed, windows


@dataclass(frozen=True)
class Geometry:
    """A convolution with symmetric padding, as cuDNN requires."""

    image: Shape
    weight: Shape
    result: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

    @classmethod
    def of(
        cls, batch: int, channels: int, outputs: int, groups: int, wins: Windows
    ) -> "Geometry | None":
        """Return the geometry of ``wins``, None if their padding is not symmetric."""
        before = tuple(pad for pad, _ in wins.pads)
        for size, pad, needed, count, step, tap, gap in zip(
            *(wins.size, before, wins.needed, wins.count, wins.stride),
            *(wins.kernel, wins.dilation),
            strict=True,
        ):
            room = size + 2 * pad - gap * (tap - 1) - 1
            if pad < 0 or needed < 1 or room < 0 or room // step + 1 != count:
                return None
        return cls(
            (batch, channels, *wins.size),
            (outputs, channels // groups, *wins.kernel),
            (batch, outputs, *wins.count),
            wins.stride,
            before,
            wins.dilation,
        ).with_two_axes()

    def with_two_axes(self) -> "Geometry":
        """Return the same convolution with two spatial axes if it has one."""
        if len(self.image) != 3:
            return self
        image, weight, result = (
            (*shape[:2], 1, shape[2])
            for shape in (self.image, self.weight, self.result)
        )
        stride, padding, dilation = self.stride, self.padding, self.dilation
        return Geometry(
            image, weight, result, (1, *stride), (0, *padding), (1, *dilation)
        )


def with_geometry(
    x: Array, weight: Array, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> tuple[Array, Geometry | None, Shape]:
    """Return the image of a convolution, its geometry, and the shape of the result.

    If the padding is not symmetric, the difference of both sides is padded explicitly.
    """

    def geometry_of(image: Array, padding: Any) -> tuple[Geometry | None, Windows]:
        wins = windows(image.shape[2:], weight.shape[2:], stride, padding, dilation)
        sizes = (image.shape[0], image.shape[1], weight.shape[0], groups)
        return Geometry.of(*sizes, wins), wins

    geometry, wins = geometry_of(x, padding)
    even = tuple(map(min, wins.pads))
    if geometry is None and min(even) >= 0 and x.size:
        before, after = (
            [0, 0, *(pads[side] - n for pads, n in zip(wins.pads, even, strict=True))]
            for side in (0, 1)
        )
        x = pad_op.kernel(x, before + after)
        geometry, wins = geometry_of(x, even)
    return x, geometry, (x.shape[0], weight.shape[0], *wins.count)


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
    """Compute :func:`burn.ops.conv` with cuDNN."""
    steps: Any = {"stride": stride, "padding": padding, "dilation": dilation}
    if are_convolved(x, weight, bias) and x.shape[1] == weight.shape[1] * groups:
        image, geometry, shape = with_geometry(x, weight, groups=groups, **steps)
        operands = (image, weight) if bias is None else (image, weight, bias)
        out = _run("forward", geometry, operands, shape)
        if out is not None:
            return out
    return conv_op.kernel(x, weight, bias, groups=groups, **steps)


@conv_transpose_op.on(Cuda)
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
    """Compute :func:`burn.ops.conv_transpose` as a convolution gradient with cuDNN."""
    if are_convolved(x, weight, bias) and x.shape[1] == weight.shape[0]:
        wins = transposed(
            *(x.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation)
        )
        channels = weight.shape[1] * groups
        geometry = Geometry.of(x.shape[0], channels, x.shape[1], groups, wins)
        shape = (x.shape[0], channels, *wins.size)
        out = _run("data_gradient", geometry, (x, weight), shape)
        if out is not None:
            if bias is not None:
                out += bias.reshape(-1, *(1 for _ in wins.size))
            return out
    return conv_transpose_op.kernel(
        *(x, weight, bias),
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
    )


@conv_weight_grad_op.on(Cuda)
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
    """Compute :func:`burn.ops.conv_weight_grad` with cuDNN."""
    steps: Any = {"stride": stride, "padding": padding, "dilation": dilation}
    if are_convolved(x, grad, None) and x.shape[1] % groups == 0:
        wins = windows(x.shape[2:], kernel_size, stride, padding, dilation)
        if wins.count == grad.shape[2:] and x.shape[0] == grad.shape[0]:
            sizes = (x.shape[0], x.shape[1], grad.shape[1], groups)
            shape = (grad.shape[1], x.shape[1] // groups, *kernel_size)
            out = _run("weight_gradient", Geometry.of(*sizes, wins), (x, grad), shape)
            if out is not None:
                return out
    return conv_weight_grad_op.kernel(
        x, grad, kernel_size=kernel_size, groups=groups, **steps
    )


def are_convolved(x: Array, other: Array, bias: Array | None) -> bool:
    """Return whether cuDNN supports the operands."""
    if x.dtype not in TYPES or other.dtype != x.dtype or not 3 <= x.ndim <= 5:
        return False
    if other.ndim != x.ndim or (bias is not None and bias.dtype != x.dtype):
        return False
    return bool(x.size and other.size and cudnn() is not None)


def _run(
    kind: str, geometry: Geometry | None, operands: tuple[Array, ...], shape: Shape
) -> Array | None:
    """Return the result of ``shape``, None if cuDNN cannot compute it."""
    import cupy

    if geometry is None or not prod(shape):
        return None
    device = cupy.cuda.runtime.getDevice()
    dtype, tf32 = operands[0].dtype, Cuda(device).tf32
    tuned = kind == "forward" and is_tuning(device)  # gradients: always the same plan
    key = (kind, dtype, tf32, geometry, len(operands))
    convolution = GRAPHS.get(
        (device, tuned, key),
        lambda: _build(
            *(device, dtype, kind, geometry, len(operands) > 2), key if tuned else None
        ),
    )
    if convolution is None:
        return None
    layout = convolution.layout
    first, second, *biases = operands
    arrays = [layout.of(first), pack_once(second, layout, layout.of)]
    arrays += [cupy.ascontiguousarray(bias) for bias in biases]
    out = layout.empty(shape, dtype)
    if tuned:
        convolution.tune((*arrays, out))
    convolution.run(*arrays, out)
    return out


def _build(
    device: int,
    dtype: Any,
    kind: str,
    geometry: Geometry,
    biased: bool,
    key: Any = None,
) -> Convolution | None:
    layout = Layout(channels_last=dtype != np.float32 or Cuda(device).tf32)
    try:
        return Convolution(
            device,
            dtype,
            layout,
            lambda builder: _operands(builder, kind, geometry, biased),
            key,
        )
    except (RuntimeError, cudnn().cudnnGraphNotSupportedError) as error:
        warnings.warn(
            f"cuDNN has no plan for {kind} of {geometry} in {dtype}, which CuPy "
            f"computes more slowly: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _operands(
    builder: Convolution, kind: str, geometry: Geometry, biased: bool
) -> tuple[Any, ...]:
    """Return the tensors of a graph of one operation, the result last."""
    graph = builder.graph
    steps = {
        "padding": list(geometry.padding),
        "stride": list(geometry.stride),
        "dilation": list(geometry.dilation),
    }
    operands: tuple[Any, ...]
    if kind == "forward":
        image = builder.tensor("image", geometry.image)
        weight = builder.tensor("weight", geometry.weight)
        out, shape = (
            graph.conv_fprop(image=image, weight=weight, **steps),
            geometry.result,
        )
        operands = (image, weight)
        if biased:
            channels = geometry.weight[0]
            bias = builder.tensor("bias", (1, channels, *(1 for _ in geometry.stride)))
            out = graph.bias(name="sum", input=out, bias=bias)
            operands = (image, weight, bias)
    elif kind == "data_gradient":
        loss = builder.tensor("loss", geometry.result)
        weight = builder.tensor("weight", geometry.weight)
        out, shape = graph.conv_dgrad(loss=loss, filter=weight, **steps), geometry.image
        operands = (loss, weight)
    else:
        loss = builder.tensor("loss", geometry.result)
        image = builder.tensor("image", geometry.image)
        out, shape = graph.conv_wgrad(image=image, loss=loss, **steps), geometry.weight
        operands = (image, loss)
    out.set_dim(list(shape)).set_stride(list(builder.layout.strides(shape)))
    return *operands, out
