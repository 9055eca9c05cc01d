"""Gradient operators of programs that contain a training step."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from burn_import.frontends.torch_export.aten.control import formal, types_of
from burn_import.frontends.torch_export.aten.nn.activation import gelu
from burn_import.frontends.torch_export.aten.nn.conv import Numbers, convolution
from burn_import.frontends.torch_export.aten.nn.pool import adaptive_avg_pool, avg_pool
from burn_import.frontends.torch_export.aten.shape.scatter import scatter_slices
from burn_import.frontends.torch_export.builder import BOOL, INT64, Builder, Value
from burn_import.frontends.torch_export.registry import RULES, Rule, rule
from burn_ir import UnsupportedModel
from burn_ir.derivatives import GRADIENT

Mask = Sequence[bool]


def derivative(
    g: Builder,
    grad: Value,
    xs: Sequence[Value],
    forward: Callable[..., Value],
    others: Sequence[Value] = (),
) -> tuple[Value, ...]:
    """Return the gradients by ``xs`` for ``grad``, that of ``forward(*xs, *others)``.

    ``forward`` writes nodes with the given builder, which are differentiated: no rule
    repeats the derivative of a layer.
    """
    inner = replace(g.at(grad.dtype), out=g.out.inner())
    constants = [grad, *others]
    first = [formal(g, x, "x") for x in xs]
    rest = [formal(g, x, "given") for x in constants]
    result = inner.op("Mul", forward(inner, *first, *rest[1:]), rest[0])
    body = inner.out.body(types_of([*first, *rest]), [result.name])
    domain, op_type = GRADIENT
    names = {
        "xs": tuple(x.name for x in first),
        "zs": tuple(x.name for x in rest),
        "y": result.name,
    }
    operands = (*xs, *constants)
    return g.many(op_type, len(xs), *operands, domain=domain, function=body, **names)


@rule("aten.convolution_backward.default")
def convolution_backward(
    g: Builder,
    grad_output: Value,
    input: Value,
    weight: Value,
    bias_sizes: Any,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int,
    output_mask: Mask,
) -> tuple[Value, ...]:
    """Return the gradients that the mask selects; the bias has a sum."""
    options = (stride, padding, dilation, transposed, output_padding, groups)
    x, w, b = output_mask

    def forward(to: Builder, *operands: Value) -> Value:
        first, second = operands if x else operands[::-1]
        return convolution(to, first, second, None, *options)

    gradients: tuple[Value, ...] = ()
    if x or w:
        pair = (input, weight) if x else (weight, input)
        count = 2 if x and w else 1
        gradients = derivative(g, grad_output, pair[:count], forward, pair[count:])
    if b:
        axes = [axis for axis in range(grad_output.rank) if axis != 1]
        gradients = *gradients, g.op("ReduceSum", grad_output, axes, keepdims=0)
    return gradients


@rule("aten.avg_pool2d_backward.default")
def avg_pool_backward(
    g: Builder,
    grad_output: Value,
    self: Value,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    options = (padding, ceil_mode, count_include_pad, divisor_override)

    def forward(to: Builder, x: Value) -> Value:
        pooled: Value = avg_pool(2)(to, x, kernel_size, stride, *options)
        return pooled

    return derivative(g, grad_output, [self], forward)[0]


@rule("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(g: Builder, grad_output: Value, self: Value) -> Value:
    sizes = (grad_output.dims or ())[-2:]
    if not all(isinstance(size, int) for size in sizes):
        raise UnsupportedModel("expected a fixed output size")

    def forward(to: Builder, x: Value) -> Value:
        pooled: Value = adaptive_avg_pool(2)(to, x, sizes)
        return pooled

    return derivative(g, grad_output, [self], forward)[0]


@rule("aten.max_pool2d_with_indices_backward.default")
def max_pool_backward(
    g: Builder,
    grad_output: Value,
    self: Value,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
    indices: Value,
) -> Value:
    """Return each gradient at its maximum, summed for overlapping windows."""
    shape = g.op("Shape", self)
    flat = [0] * (self.rank - 2) + [-1]
    gradient = g.op(
        "ScatterElements",
        g.op("Reshape", g.op("Expand", g.cast(0), shape), flat),
        g.at(INT64).op("Reshape", indices, flat),
        g.op("Reshape", grad_output, flat),
        axis=-1,
        reduction="add",
    )
    return g.op("Reshape", gradient, shape)


@rule("aten.embedding_dense_backward.default")
def embedding_backward(
    g: Builder,
    grad_output: Value,
    indices: Value,
    num_weights: int | Value,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Value:
    """Return the sum of the gradients of each row; 0 for padding."""
    width = g.extent(grad_output, -1)
    index = g.at(INT64).op("Reshape", indices, [-1])
    index = replace(g.at(INT64).cast(index), dims=(-1,))
    rows = g.op("Reshape", grad_output, [-1, width])
    column = g.at(INT64).op("Unsqueeze", index, [1])
    if padding_idx >= 0:
        outside = g.at(BOOL).op("Equal", column, padding_idx)
        rows = g.op("Where", outside, g.cast(0), rows)
    if scale_grad_by_freq:
        none = replace(g.op("Expand", g.cast(0), [num_weights]), dims=(-1,))
        ones = g.op("Expand", g.cast(1), g.op("Shape", index))
        counts = scatter_slices(g, none, 0, index, ones, "add")
        rows = g.op("Div", rows, g.op("Gather", counts, column, axis=0))
    zeros = g.op("Expand", g.cast(0), [num_weights, width])
    return scatter_slices(g, replace(zeros, dims=(-1, -1)), 0, index, rows, "add")


def centered_gradient(
    g: Builder, grad: Value, unit: Value, scale: Value, axes: list[int]
) -> Value:
    """Return the gradient of ``x`` normalized to ``unit``.

    Normalization removes from a gradient its mean and its component along the result.
    """
    along = g.op("ReduceMean", g.op("Mul", grad, unit), axes)
    rest = g.op("Sub", grad, g.op("ReduceMean", grad, axes))
    return g.op("Mul", scale, g.op("Sub", rest, g.op("Mul", unit, along)))


@rule("aten.native_layer_norm_backward.default")
def layer_norm_backward(
    g: Builder,
    grad_out: Value,
    input: Value,
    normalized_shape: Sequence[int],
    mean: Value,
    rstd: Value,
    weight: Value | None,
    bias: Value | None,
    output_mask: Mask,
) -> list[Value]:
    of = g.at(mean.dtype)
    grad, x = of.floats(grad_out, input)
    unit = of.op("Mul", of.op("Sub", x, mean), rstd)
    axes = list(range(input.rank - len(normalized_shape), input.rank))
    outer = list(range(axes[0]))
    scaled = grad if weight is None else of.op("Mul", grad, of.cast(weight))
    gradients = [
        lambda: centered_gradient(of, scaled, unit, rstd, axes),
        lambda: sum_over(of, of.op("Mul", grad, unit), outer),
        lambda: sum_over(of, grad, outer),
    ]
    return [g.cast(of_) for of_ in requested(gradients, output_mask)]


def requested(makers: Sequence[Callable[[], Value]], mask: Mask) -> list[Value]:
    """Return the gradients that a mask selects; only these are written."""
    return [make() for make, wanted in zip(makers, mask, strict=True) if wanted]


def sum_over(g: Builder, x: Value, axes: list[int]) -> Value:
    """Return the sum over axes, if there are any."""
    return g.op("ReduceSum", x, axes, keepdims=0) if axes else x


@rule("aten.native_group_norm_backward.default")
def group_norm_backward(
    g: Builder,
    grad_out: Value,
    input: Value,
    mean: Value,
    rstd: Value,
    weight: Value | None,
    N: int | Value,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int | Value,  # noqa: N803
    group: int,
    output_mask: Mask,
) -> list[Value]:
    of = g.at(mean.dtype)
    shape = [N, group, C // group, -1]
    grad, x = (of.op("Reshape", each, shape) for each in of.floats(grad_out, input))
    center, scale = (of.op("Unsqueeze", each, [2, 3]) for each in (mean, rstd))
    unit = of.op("Mul", of.op("Sub", x, center), scale)
    scaled = grad
    if weight is not None:
        rows = of.op("Reshape", of.cast(weight), [1, group, C // group, 1])
        scaled = of.op("Mul", grad, rows)

    def of_input() -> Value:
        gradient = centered_gradient(of, scaled, unit, scale, [2, 3])
        return of.op("Reshape", gradient, of.op("Shape", input))

    def by_channel(x: Value) -> Value:
        return of.op("Reshape", sum_over(of, x, [0, 3]), [C])

    gradients = [
        of_input,
        lambda: by_channel(of.op("Mul", grad, unit)),
        lambda: by_channel(grad),
    ]
    return [g.cast(of_) for of_ in requested(gradients, output_mask)]


@rule("aten._softmax_backward_data.default")
def softmax_backward(
    g: Builder, grad_output: Value, output: Value, dim: int, input_dtype: Any
) -> Value:
    of = g.at(output.dtype)
    product = of.op("Mul", grad_output, output)
    along = of.op("Mul", output, of.op("ReduceSum", product, [dim]))
    return g.cast(of.op("Sub", product, along))


@rule("aten._log_softmax_backward_data.default")
def log_softmax_backward(
    g: Builder, grad_output: Value, output: Value, dim: int, input_dtype: Any
) -> Value:
    of = g.at(output.dtype)
    total = of.op("ReduceSum", grad_output, [dim])
    share = of.op("Mul", of.op("Exp", output), total)
    return g.cast(of.op("Sub", grad_output, share))


@rule("aten.native_dropout_backward.default")
def dropout_backward(
    g: Builder, grad_output: Value, mask: Value, scale: float
) -> Value:
    return g.op("Mul", g.op("Mul", grad_output, g.cast(mask)), float(scale))


@rule("aten.threshold_backward.default")
def threshold_backward(
    g: Builder, grad_output: Value, self: Value, threshold: float
) -> Value:
    inside = g.at(BOOL).op("Greater", self, threshold)
    return g.op("Where", inside, grad_output, g.cast(0))


@rule("aten.tanh_backward.default")
def tanh_backward(g: Builder, grad_output: Value, output: Value) -> Value:
    slope = g.op("Sub", g.cast(1), g.op("Mul", output, output))
    return g.op("Mul", grad_output, slope)


@rule("aten.sigmoid_backward.default")
def sigmoid_backward(g: Builder, grad_output: Value, output: Value) -> Value:
    slope = g.op("Mul", output, g.op("Sub", g.cast(1), output))
    return g.op("Mul", grad_output, slope)


@rule("aten.gelu_backward.default")
def gelu_backward(
    g: Builder, grad_output: Value, self: Value, approximate: str = "none"
) -> Value:
    return derivative(g, grad_output, [self], lambda to, x: gelu(to, x, approximate))[0]


def of_function(target: str) -> Rule:
    """Return the rule of the gradient of an elementwise function."""

    def apply(g: Builder, grad_output: Value, self: Value) -> Value:
        return derivative(g, grad_output, [self], RULES[target].rule)[0]

    return apply


for _name in ("silu", "hardswish", "hardsigmoid", "mish"):
    rule(f"aten.{_name}_backward.default")(of_function(f"aten.{_name}.default"))
