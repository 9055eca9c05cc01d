"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_import.exported.builder import Builder, Value
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
    y, mean, deviation = g.many(op, 3, *operands, axis=axis, epsilon=float(eps))
    return y, mean, deviation


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
    if training or running_mean is None or running_var is None:
        raise UnsupportedModel("batch_norm in training mode; export model.eval()")
    shape = running_mean.dims or ()
    numbers = [int(str(d)) for d in shape]
    return g.op(
        "BatchNormalization",
        input,
        weight or filled_like(g, numbers, 1),
        bias or filled_like(g, numbers, 0),
        running_mean,
        running_var,
        epsilon=float(eps),
        momentum=1 - float(momentum),
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
) -> Any:
    operands = (input, weight, bias, running_mean, running_var)
    made = batch_norm(g, *operands, False, momentum, eps)
    return made, None, None
