"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from burn_import.exported.builder import Builder, Value
from burn_import.exported.rules.functions import info
from burn_import.exported.rules.norms import vector_norm
from burn_import.exported.table import rule
from burn_ir import UnsupportedModel


def filled_like(g: Builder, shape: Sequence[int], number: float) -> Value:
    """A stored tensor of one number: the weight of a layer without weights."""
    return g.constant(np.full(tuple(shape), number), g.dtype)


@rule("aten.layer_norm.default")
def layer_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-05,
) -> Value:
    scale = weight or filled_like(g, normalized_shape, 1)
    axis = -len(normalized_shape)
    return g.op("LayerNormalization", input, scale, bias, axis=axis, epsilon=float(eps))


@rule("aten.native_layer_norm.default")
def native_layer_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value, ...]:
    scale = weight or filled_like(g, normalized_shape, 1)
    axis = -len(normalized_shape)
    operands = (input, scale, bias)
    op = "LayerNormalization"
    return g.many(op, 3, *operands, axis=axis, epsilon=float(eps))


@rule("aten.rms_norm.default")
def rms_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    eps: float | None = None,
) -> Value:
    scale = weight or filled_like(g, normalized_shape, 1)
    least = smallest(g) if eps is None else float(eps)
    axis = -len(normalized_shape)
    return g.op("RMSNormalization", input, scale, axis=axis, epsilon=least)


def smallest(g: Builder) -> float:
    """The distance from 1 to the next number of the result's dtype."""
    return float(info(g).eps)


@rule("aten._fused_rms_norm.default")
def fused_rms_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    eps: float | None,
) -> tuple[Value, Value]:
    least = smallest(g) if eps is None else float(eps)
    axes = list(range(-len(normalized_shape), 0))
    squares = g.op("ReduceMean", g.op("Mul", input, input), axes)
    scale = g.op("Reciprocal", g.op("Sqrt", g.op("Add", squares, least)))
    return rms_norm(g, input, normalized_shape, weight, eps), scale


def channels(x: Value) -> int:
    """How many channels there are; weights are made for as many."""
    found = known_channels(x)
    if found is None:
        raise UnsupportedModel("expected a known number of channels")
    return found


def known_channels(x: Value) -> int | None:
    """How many channels there are, if that does not vary."""
    found = x.dims[1] if x.dims is not None and x.rank > 1 else None
    return found if isinstance(found, int) else None


def by_statistics(
    g: Builder,
    x: Value,
    mean: Value,
    var: Value,
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> Value:
    """``x`` normalised step by step: there is no layer of so many channels."""
    axes = list(range(1, x.rank - 1))

    def column(of: Value) -> Value:
        return g.op("Unsqueeze", of, axes) if axes else of

    deviation = g.op("Sqrt", g.op("Add", column(var), float(eps)))
    made = g.op("Div", g.op("Sub", x, column(mean)), deviation)
    made = made if weight is None else g.op("Mul", made, column(weight))
    return made if bias is None else g.op("Add", made, column(bias))


@rule("aten.batch_norm.default")
def batch_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Value:
    """By the statistics that are kept; by those of the batch if there are none.

    Raises:
        UnsupportedModel: statistics are kept and would change at every call.
    """
    kept = running_mean is not None and running_var is not None
    if training and kept:
        raise UnsupportedModel("batch_norm in training mode; export model.eval()")
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
        training_mode=None if kept else 1,
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
        made = by_statistics(g, input, *statistics, weight, bias, eps)
        return made, None, None
    operands = (input, weight, bias, running_mean, running_var)
    return batch_norm(g, *operands, False, momentum, eps), None, None


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
        made = by_statistics(g, input, mean, spread, weight, bias, eps)
    else:
        made = batch_norm(g, input, weight, bias, None, None, True, momentum, eps)
    return made, mean, scale


@rule("aten._native_batch_norm_legit_functional.default")
def training_step(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    """By the statistics of the batch, and what is kept of them."""
    if not training:
        kept = (running_mean, running_var)
        made = batch_norm(g, input, weight, bias, *kept, False, momentum, eps)
        return made, *kept, *kept
    made, mean, scale = batch_statistics(g, input, weight, bias, True, momentum, eps)
    axes = tuple(axis for axis in range(input.rank) if axis != 1)
    spread = g.op("Var", input, domain="burn", axes=axes)
    averages = []
    for old, new in ((running_mean, mean), (running_var, spread)):
        before = g.op("Mul", old, 1 - float(momentum))
        averages.append(g.op("Add", before, g.op("Mul", new, float(momentum))))
    return made, mean, scale, *averages


@rule("aten.instance_norm.default")
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
) -> Value:
    if not use_input_stats:
        operands = (input, weight, bias, running_mean, running_var)
        return batch_norm(g, *operands, False, momentum, eps)
    count = [channels(input)]
    return g.op(
        "InstanceNormalization",
        input,
        weight or filled_like(g, count, 1),
        bias or filled_like(g, count, 0),
        epsilon=float(eps),
    )


@rule("aten.group_norm.default")
def group_norm(
    g: Builder,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-05,
) -> Value:
    count = [channels(input)]
    return g.op(
        "GroupNormalization",
        input,
        weight or filled_like(g, count, 1),
        bias or filled_like(g, count, 0),
        num_groups=num_groups,
        epsilon=float(eps),
    )


@rule("aten.native_group_norm.default")
def native_group_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: int | Value,  # noqa: N803
    C: int | Value,  # noqa: N803
    HxW: int | Value,  # noqa: N803
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    made = group_norm(g, input, group, weight, bias, eps)
    rows = g.op("Reshape", input, [N, group, -1])
    mean = g.op("ReduceMean", rows, [2], keepdims=0)
    spread = g.op("Var", rows, domain="burn", axes=(2,), correction=0)
    scale = g.op("Sqrt", g.op("Add", spread, float(eps)))
    return made, mean, g.op("Reciprocal", scale)


@rule("aten._weight_norm.default")
def weight_norm(out: Builder, v: Value, g: Value, dim: int = 0) -> Value:
    return weight_norm_interface(out, v, g, dim)[0]


@rule("aten._weight_norm_interface.default")
def weight_norm_interface(
    out: Builder, v: Value, g: Value, dim: int = 0
) -> tuple[Value, Value]:
    """Directions ``v`` of length ``g`` along an axis, and how long they were."""
    axes = [axis for axis in range(v.rank) if axis != v.axis(dim)]
    size = vector_norm(out, replace(v, dtype=out.dtype), 2.0, axes, True)
    return out.op("Mul", v, out.op("Div", g, size)), size
