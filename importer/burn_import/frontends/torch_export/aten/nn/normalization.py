"""Normalization layers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.aten.linalg.vector_norms import vector_norm
from burn_import.frontends.torch_export.aten.math.elementwise import info
from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


def filled_like(g: Builder, shape: Sequence[int], number: float) -> Value:
    """Return a constant of one number, as the weight of a layer without weights."""
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
    options: dict[str, Any] = {"axis": -len(normalized_shape), "epsilon": float(eps)}
    if weight is not None:
        return g.op("LayerNormalization", input, weight, bias, **options)
    result = g.op("LayerNorm", input, domain="burn", **options)
    return result if bias is None else g.op("Add", result, bias)


@rule("aten.native_layer_norm.default")
def native_layer_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value, ...]:
    scale = weight or filled_like(g, [1], 1)
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
    least = smallest(g) if eps is None else float(eps)
    options: dict[str, Any] = {"axis": -len(normalized_shape), "epsilon": least}
    if weight is not None:
        return g.op("RMSNormalization", input, weight, **options)
    return g.op("RMSNorm", input, domain="burn", **options)


def smallest(g: Builder) -> float:
    """Return the machine epsilon of the result's dtype."""
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
    """Return the number of channels, for which weights are created."""
    count = known_channels(x)
    if count is None:
        raise UnsupportedModel("expected a known number of channels")
    return count


def known_channels(x: Value) -> int | None:
    """Return the number of channels, None if it varies."""
    extent = x.dims[1] if x.dims is not None and x.rank > 1 else None
    return extent if isinstance(extent, int) else None


@rule("aten.group_norm.default")
def group_norm(
    g: Builder,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-05,
) -> Value:
    options: dict[str, Any] = {"num_groups": num_groups, "epsilon": float(eps)}
    if weight is None and bias is None:
        return g.op("GroupNorm", input, domain="burn", **options)
    operands = scale_and_bias(g, input, weight, bias)
    return g.op("GroupNormalization", input, *operands, **options)


def scale_and_bias(
    g: Builder, x: Value, weight: Value | None, bias: Value | None
) -> tuple[Value, Value]:
    """Return the weight and the bias of channels; ones or zeros for a missing one."""
    if weight is not None and bias is not None:
        return weight, bias
    count = [channels(x)]
    return weight or filled_like(g, count, 1), bias or filled_like(g, count, 0)


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
    result = group_norm(g, input, group, weight, bias, eps)
    rows = g.op("Reshape", input, [N, group, -1])
    mean = g.op("ReduceMean", rows, [2], keepdims=0)
    spread = g.op("Var", rows, domain="burn", axes=(2,), correction=0)
    scale = g.op("Sqrt", g.op("Add", spread, float(eps)))
    return result, mean, g.op("Reciprocal", scale)


@rule("aten._weight_norm.default")
def weight_norm(out: Builder, v: Value, g: Value, dim: int = 0) -> Value:
    return weight_norm_interface(out, v, g, dim)[0]


@rule("aten._weight_norm_interface.default")
def weight_norm_interface(
    out: Builder, v: Value, g: Value, dim: int = 0
) -> tuple[Value, Value]:
    """Return directions ``v`` scaled to norms ``g`` along an axis, and old norms.

    Axis -1 means that all of ``v`` is one direction.
    """
    axes = [axis for axis in range(v.rank) if axis != dim]
    size = vector_norm(out, replace(v, dtype=out.dtype), 2.0, axes, True)
    return out.op("Mul", v, out.op("Div", g, size)), size
