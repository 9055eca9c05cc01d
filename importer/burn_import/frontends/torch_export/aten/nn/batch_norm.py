"""Batch normalization by running statistics and by those of the batch."""

from collections.abc import Sequence
from typing import Any

from burn_import.frontends.torch_export.aten.nn.normalization import (
    channels,
    filled_like,
    known_channels,
    scale_and_bias,
)
from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel

#: The arguments that a call in training mode updates.
STATISTICS = ("running_mean", "running_var")


def by_statistics(
    g: Builder,
    x: Value,
    mean: Value,
    var: Value,
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> Value:
    """Return ``x`` normalized by arithmetic, since the channel count is unknown."""
    axes = list(range(1, x.rank - 1))

    def column(of: Value) -> Value:
        return g.op("Unsqueeze", of, axes) if axes else of

    deviation = g.op("Sqrt", g.op("Add", column(var), float(eps)))
    result = g.op("Div", g.op("Sub", x, column(mean)), deviation)
    result = result if weight is None else g.op("Mul", result, column(weight))
    return result if bias is None else g.op("Add", result, column(bias))


@rule("aten.batch_norm.default", writes=STATISTICS)
def batch_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float | Value,
    eps: float,
) -> Value | tuple[Value, ...]:
    """Normalize by the running statistics, or by those of the batch if none.

    In training, also return the updated statistics. If all tensors are stored it
    becomes a layer, which uses batch statistics itself while gradients are recorded.
    """
    if isinstance(momentum, Value):
        raise UnsupportedModel(
            "batch_norm: expected a momentum that is the same in each call, got one "
            "that is computed (momentum=None averages over all calls)"
        )
    vectors = (weight, bias, running_mean, running_var)
    moves = training and not _is_stored(g, vectors)
    if moves and running_mean is not None and running_var is not None:
        rest = (weight, bias, running_mean, running_var, True, momentum, eps)
        result, _, _, *averages = training_step(g, input, *rest)
        return result, *averages
    return normalized(g, input, *vectors, momentum, eps)


def _is_stored(g: Builder, operands: Sequence[Value | None]) -> bool:
    """Return whether all operands that exist are constants."""
    return all(x is None or x.name in g.out.constants for x in operands)


def normalized(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    momentum: float,
    eps: float,
) -> Value:
    """Return ``input`` normalized by running statistics or, without, by its own."""
    has_statistics = running_mean is not None and running_var is not None
    count = [channels(input)]
    return g.op(
        "BatchNormalization",
        input,
        weight or filled_like(g, count, 1),
        bias or filled_like(g, count, 0),
        running_mean or filled_like(g, count, 0),
        running_var or filled_like(g, count, 1),
        epsilon=float(eps),
        momentum=1 - float(momentum),
        training_mode=None if has_statistics else 1,
    )


@rule("aten._native_batch_norm_legit_no_training.default")
def native_batch_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, None, None]:
    if known_channels(input) is None:
        statistics = (running_mean, running_var)
        result = by_statistics(g, input, *statistics, weight, bias, eps)
        return result, None, None
    operands = (input, weight, bias, running_mean, running_var)
    return normalized(g, *operands, momentum, eps), None, None


@rule("aten._native_batch_norm_legit.no_stats")
def batch_statistics(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value]:
    axes = [axis for axis in range(input.rank) if axis != 1]
    mean = g.op("ReduceMean", input, axes, keepdims=0)
    options: dict[str, Any] = {"axes": tuple(axes), "correction": 0}
    spread = g.op("Var", input, domain="burn", **options)
    scale = g.op("Reciprocal", g.op("Sqrt", g.op("Add", spread, float(eps))))
    if known_channels(input) is None:
        result = by_statistics(g, input, mean, spread, weight, bias, eps)
    else:
        result = normalized(g, input, weight, bias, None, None, momentum, eps)
    return result, mean, scale


@rule("aten._native_batch_norm_legit_functional.default")
@rule(
    "aten._native_batch_norm_legit.default",
    "aten.native_batch_norm.default",
    writes=STATISTICS,
)
def training_step(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    """Return the normalized input, batch statistics, and updated ones, if any."""
    if not training:
        statistics = (running_mean, running_var)
        result = normalized(g, input, weight, bias, *statistics, momentum, eps)
        return result, *statistics, *statistics
    result, mean, scale = batch_statistics(g, input, weight, bias, True, momentum, eps)
    axes = tuple(axis for axis in range(input.rank) if axis != 1)
    spread = g.op("Var", input, domain="burn", axes=axes)
    pairs = ((running_mean, mean), (running_var, spread))
    averages = [old and average(g, old, new, momentum) for old, new in pairs]
    return result, mean, scale, *averages


@rule("aten._batch_norm_with_update.default", writes=STATISTICS)
@rule("aten._batch_norm_with_update_functional.default")
def with_update(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """Normalize as in training; one result is only used by a backend of PyTorch."""
    operands = (input, weight, bias, running_mean, running_var)
    *results, mean, var = training_step(g, *operands, True, momentum, eps)
    return *results, None, mean, var


@rule("aten.instance_norm.default", writes=STATISTICS)
def instance_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Value | tuple[Value, ...]:
    if not use_input_stats:
        operands = (input, weight, bias, running_mean, running_var)
        return normalized(g, *operands, momentum, eps)
    if weight is None and bias is None:
        result = g.op("InstanceNorm", input, domain="burn", epsilon=float(eps))
    else:
        scale, shift = scale_and_bias(g, input, weight, bias)
        result = g.op("InstanceNormalization", input, scale, shift, epsilon=float(eps))
    if running_mean is None or running_var is None:
        return result
    axes = tuple(range(2, input.rank))
    means = g.op("ReduceMean", input, list(axes), keepdims=0)
    spreads = g.op("Var", input, domain="burn", axes=axes)
    pairs = ((running_mean, means), (running_var, spreads))
    new = [g.op("ReduceMean", each, [0], keepdims=0) for _, each in pairs]
    olds = [old for old, _ in pairs]
    return result, *(
        average(g, *pair, momentum) for pair in zip(olds, new, strict=True)
    )


def average(g: Builder, old: Value, new: Value, momentum: float) -> Value:
    """Return the running average of a statistic after another batch."""
    before = g.op("Mul", old, 1 - float(momentum))
    return g.op("Add", before, g.op("Mul", new, float(momentum)))
