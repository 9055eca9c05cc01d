"""Gradient operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, dtype_of, f32, floats, i64, ints
from tests.importer.aten.inputs import F32, X
from tests.importer.aten.nn.conv import conv, transposed
from tests.importer.aten.nn.pool import adaptive, average
from tests.importer.aten.nn.windows import Ints

MASK = ints("bool", ("n", 3, 4), 0, 1)
POSITIVE = f32("n", 3, 1, low=0.5)


def adjoint(linear: Callable[[Array], Array], x: Array, grad: Array) -> Array:
    """Return the gradient of ``x`` in a linear function, element by element."""
    out = np.zeros(x.shape)
    for index in np.ndindex(*x.shape):
        unit = np.zeros(x.shape)
        unit[index] = 1
        out[index] = (linear(unit) * grad).sum()
    return out.astype(x.dtype)


def slope(function: Callable[[float], float]) -> Any:
    """Return a gradient by finite differences in float64."""

    def run(grad: Array, x: Array) -> Array:
        apply = np.vectorize(function)
        wide = x.astype(np.float64)
        result = grad * (apply(wide + 1e-6) - apply(wide - 1e-6)) / 2e-6
        return np.asarray(result, F32)

    return run


def convolution(*how: Any, layer: Any = conv, wanted: str = "xwb") -> Any:
    """Return the gradients of a convolution's input, weight and bias."""
    forward = layer(*how)

    def run(grad: Array, x: Array, w: Array) -> Any:
        results = []
        if "x" in wanted:
            results.append(adjoint(lambda unit: forward(unit, w), x, grad))
        if "w" in wanted:
            results.append(adjoint(lambda unit: forward(x, unit), w, grad))
        if "b" in wanted:
            results.append(grad.sum((0, *range(2, grad.ndim))))
        return tuple(results)

    return run


def pooled(forward: Callable[[Array], Array]) -> Any:
    """Return the gradient of average pooling, from those of unit vectors."""

    def run(grad: Array, x: Array) -> Array:
        count = x.shape[2] * x.shape[3]
        units = np.eye(count).reshape(count, 1, *x.shape[2:])
        result = np.einsum("kij,ncij->nck", forward(units)[:, 0], grad)
        return np.asarray(result.reshape(x.shape), x.dtype)

    return run


def scattered(grad: Array, x: Array, places: Array) -> Array:
    out = np.zeros((*x.shape[:2], x.shape[2] * x.shape[3]), x.dtype)
    for n, c, i, j in np.ndindex(*grad.shape):
        out[n, c, places[n, c, i, j]] += grad[n, c, i, j]
    return out.reshape(x.shape)


def rows(padding: int, by_count: bool) -> Any:
    """Return the sums of the gradients of each of 6 rows."""

    def run(grad: Array, index: Array) -> Array:
        out = np.zeros((6, grad.shape[-1]), grad.dtype)
        for position in np.ndindex(*index.shape):
            row = index[position]
            count = (index == row).sum() if by_count else 1
            out[row] += grad[position] / F32(count) * (row != padding)
        return out

    return run


def normalized(axes: Ints, x: Array, mean: Array, scale: Array) -> Any:
    """Return the derivative of ``(x - mean) * scale``, where both depend on ``x``."""
    unit = (x - mean) * scale

    def run(grad: Array) -> Array:
        along = (grad * unit).mean(tuple(axes), keepdims=True)
        centered = grad - grad.mean(tuple(axes), keepdims=True)
        return np.asarray(scale * (centered - unit * along))

    return unit, run


def layer(grad: Array, x: Array, mean: Array, scale: Array, w: Array, b: Array) -> Any:
    unit, back = normalized([-1], x, mean, scale)
    return back(grad * w), (grad * unit).sum((0, 1)), grad.sum((0, 1))


def layer_plain(grad: Array, x: Array, mean: Array, scale: Array) -> Any:
    return normalized([-2, -1], x, mean, scale)[1](grad)


def group(grad: Array, x: Array, mean: Array, scale: Array, w: Array) -> Any:
    shape = (len(x), 3, 2, -1)
    rows_, given = x.reshape(shape), grad.reshape(shape)
    center, by = mean[..., None, None], scale[..., None, None]
    unit, back = normalized([2, 3], rows_, center, by)
    result = back(given * w.reshape(1, 3, 2, 1)).reshape(x.shape)
    return result, (given * unit).sum((0, 3)).ravel(), given.sum((0, 3)).ravel()


def gelu_tanh(x: float) -> float:
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


SLOPES: dict[str, Callable[[float], float]] = {
    "silu": lambda x: x / (1 + math.exp(-x)),
    "hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "hardsigmoid": lambda x: min(max(x + 3, 0), 6) / 6,
    "mish": lambda x: x * math.tanh(softplus(x)),
    "gelu": lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
}

CASES: tuple[Case, ...] = (
    case(
        "convolution_backward.default",
        convolution([2, 1], [(1, 1), (0, 0)], [1, 2], 2),
        grad_output=f32("n", 6, 2, 2),
        input=f32("n", 4, 3, 4),
        weight=f32(6, 2, 3, 2),
        bias_sizes=[6],
        stride=[2, 1],
        padding=[1, 0],
        dilation=[1, 2],
        transposed=False,
        output_padding=[0, 0],
        groups=2,
        output_mask=[True, True, True],
    ),
    *(
        case(
            "convolution_backward.default",
            convolution([2], [(1, 1)], [1], wanted=wanted),
            label=wanted,
            grad_output=f32("n", 3, 4),
            input=f32("n", 2, 7),
            weight=f32(3, 2, 3),
            bias_sizes=[3],
            stride=[2],
            padding=[1],
            dilation=[1],
            transposed=False,
            output_padding=[0],
            groups=1,
            output_mask=[letter in wanted for letter in "xwb"],
        )
        for wanted in ("x", "w", "wb")
    ),
    case(
        "convolution_backward.default",
        convolution([2, 1], [1, 0], [1, 2], [1, 0], 2, layer=transposed),
        label="transposed",
        grad_output=f32("n", 6, 6, 4),
        input=f32("n", 4, 3, 2),
        weight=f32(4, 3, 3, 2),
        bias_sizes=[6],
        stride=[2, 1],
        padding=[1, 0],
        dilation=[1, 2],
        transposed=True,
        output_padding=[1, 0],
        groups=2,
        output_mask=[True, True, True],
    ),
    *(
        case(
            "avg_pool2d_backward.default",
            pooled(average([3, 2], [2, 1], [1, 0], counted=counted)),
            label=str(counted),
            grad_output=f32("n", 2, 3, 5),
            self=f32("n", 2, 5, 6),
            kernel_size=[3, 2],
            stride=[2, 1],
            padding=[1, 0],
            ceil_mode=False,
            count_include_pad=counted,
            divisor_override=None,
        )
        for counted in (True, False)
    ),
    case(
        "avg_pool2d_backward.default",
        pooled(lambda x: average([3, 2], [2, 1], [1, 0])(x) * 6 / 5),
        label="divisor",
        grad_output=f32("n", 2, 3, 5),
        self=f32("n", 2, 5, 6),
        kernel_size=[3, 2],
        stride=[2, 1],
        padding=[1, 0],
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=5,
    ),
    *(
        case(
            "_adaptive_avg_pool2d_backward.default",
            pooled(adaptive(np.mean, list(sizes))),
            label=str(sizes),
            grad_output=f32("n", 2, *sizes),
            self=f32("n", 2, 5, 6),
        )
        for sizes in ((3, 4), (1, 1))
    ),
    case(
        "max_pool2d_with_indices_backward.default",
        scattered,
        grad_output=f32("n", 2, 3, 5),
        self=f32("n", 2, 5, 6),
        kernel_size=[3, 2],
        stride=[2, 1],
        padding=[1, 0],
        dilation=[1, 1],
        ceil_mode=False,
        indices=i64("n", 2, 3, 5, low=0, high=29),
    ),
    *(
        case(
            "embedding_dense_backward.default",
            rows(padding, by_count),
            label=f"{padding} {by_count}",
            grad_output=f32("n", 4, 3),
            indices=i64("n", 4, low=0, high=5),
            num_weights=6,
            padding_idx=padding,
            scale_grad_by_freq=by_count,
        )
        for padding in (-1, 2)
        for by_count in (False, True)
    ),
    case(
        "native_layer_norm_backward.default",
        layer,
        grad_out=X,
        input=X,
        normalized_shape=[4],
        mean=f32("n", 3, 1),
        rstd=POSITIVE,
        weight=f32(4),
        bias=f32(4),
        output_mask=[True, True, True],
    ),
    case(
        "native_layer_norm_backward.default",
        layer_plain,
        label="plain",
        grad_out=X,
        input=X,
        normalized_shape=[3, 4],
        mean=f32("n", 1, 1),
        rstd=f32("n", 1, 1, low=0.5),
        weight=None,
        bias=None,
        output_mask=[True, False, False],
    ),
    case(
        "native_group_norm_backward.default",
        group,
        grad_out=f32(2, 6, 3, 4),
        input=f32(2, 6, 3, 4),
        mean=f32(2, 3),
        rstd=f32(2, 3, low=0.5),
        weight=f32(6),
        N=2,
        C=6,
        HxW=12,
        group=3,
        output_mask=[True, True, True],
    ),
    case(
        "_softmax_backward_data.default",
        lambda grad, y: y * (grad - (grad * y).sum(1, keepdims=True)),
        grad_output=X,
        output=X,
        dim=1,
        input_dtype=dtype_of("float32"),
    ),
    case(
        "_log_softmax_backward_data.default",
        lambda grad, y: grad - np.exp(y) * grad.sum(1, keepdims=True),
        grad_output=X,
        output=X,
        dim=1,
        input_dtype=dtype_of("float32"),
    ),
    case(
        "native_dropout_backward.default",
        lambda grad, mask: grad * mask * F32(1.25),
        grad_output=X,
        mask=MASK,
        scale=1.25,
    ),
    case(
        "threshold_backward.default",
        lambda grad, x: np.where(x > 0.5, grad, F32(0)),
        grad_output=X,
        self=X,
        threshold=0.5,
    ),
    case(
        "tanh_backward.default",
        lambda grad, y: grad * (1 - y * y),
        grad_output=X,
        output=X,
    ),
    case(
        "sigmoid_backward.default",
        lambda grad, y: grad * y * (1 - y),
        grad_output=X,
        output=X,
    ),
    *(
        case(
            f"{name}_backward.default",
            slope(function),
            tolerance=1e-4,
            grad_output=X,
            self=floats("float32", ("n", 3, 4), -2.5, 2.5),
        )
        for name, function in SLOPES.items()
    ),
    case(
        "gelu_backward.default",
        slope(gelu_tanh),
        label="tanh",
        tolerance=1e-4,
        grad_output=X,
        self=X,
        approximate="tanh",
    ),
)
