"""Normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32

X, IMAGE = f32("n", 3, 4), f32("n", 6, 3, 4)
SIX, POSITIVE = f32(6), f32(6, low=0.5)
EPS = 0.01


def scaled(x: Array, weight: Array | None, bias: Array | None, axis: int = 1) -> Array:
    """Return ``x`` with a weight and a bias for each channel."""
    shape = [-1 if a == axis else 1 for a in range(x.ndim)]
    out = x if weight is None else x * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def centered(x: Array, axes: Sequence[int]) -> tuple[Array, Array, Array]:
    """Return ``x`` of mean 0 and variance 1, its mean, and 1 / deviation."""
    mean = x.mean(tuple(axes), keepdims=True)
    scale = 1 / np.sqrt(x.var(tuple(axes), keepdims=True) + np.float32(EPS))
    return (x - mean) * scale, mean, scale


def layer(axes: Sequence[int]) -> Any:
    """Return layer normalization over the last axes."""

    def run(x: Array, w: Array | None = None, b: Array | None = None) -> Array:
        out = centered(x, axes)[0]
        out = out if w is None else out * w
        return out if b is None else out + b

    return run


def layer_parts(x: Array, w: Array, b: Array) -> Any:
    out, mean, scale = centered(x, [-1])
    return out * w + b, mean, scale


def rms(x: Array, w: Array) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(EPS)) * w


def fused_rms(x: Array, w: Array) -> Any:
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(EPS))
    return x * scale * w, scale


def group(x: Array, w: Array, b: Array) -> Array:
    out = centered(x.reshape(len(x), 3, -1), [2])[0]
    return scaled(out.reshape(x.shape), w, b)


def group_parts(x: Array, w: Array, b: Array) -> Any:
    _, mean, scale = centered(x.reshape(len(x), 3, -1), [2])
    return group(x, w, b), mean[..., 0], scale[..., 0]


def batch(x: Array, w: Array, b: Array, mean: Array, var: Array) -> Array:
    out = scaled(scaled(x, None, -mean), 1 / np.sqrt(var + np.float32(EPS)), None)
    return scaled(out, w, b)


def batch_plain(x: Array, mean: Array, var: Array) -> Array:
    return batch(x, np.ones_like(mean), np.zeros_like(mean), mean, var)


def own_statistics(x: Array, w: Array, b: Array) -> Any:
    out, mean, scale = centered(x, [0, 2, 3])
    return scaled(out, w, b), mean.ravel(), scale.ravel()


def instance(x: Array, w: Array | None = None, b: Array | None = None) -> Array:
    return scaled(centered(x, [2, 3])[0], w, b)


def weighted(v: Array, g: Array) -> Any:
    size = np.sqrt((v * v).sum((1, 2), keepdims=True))
    return v * g / size, size


LAST: dict[str, Any] = {"momentum": 0.1, "eps": EPS}

CASES: tuple[Case, ...] = (
    case(
        "layer_norm.default",
        layer([-1]),
        input=X,
        normalized_shape=[4],
        weight=f32(4),
        bias=f32(4),
        eps=EPS,
    ),
    case(
        "layer_norm.default",
        layer([-2, -1]),
        label="plain",
        input=X,
        normalized_shape=[3, 4],
        eps=EPS,
    ),
    case(
        "native_layer_norm.default",
        layer_parts,
        input=X,
        normalized_shape=[4],
        weight=f32(4),
        bias=f32(4),
        eps=EPS,
    ),
    case(
        "rms_norm.default", rms, input=X, normalized_shape=[4], weight=f32(4), eps=EPS
    ),
    case(
        "_fused_rms_norm.default",
        fused_rms,
        input=X,
        normalized_shape=[4],
        weight=f32(4),
        eps=EPS,
    ),
    case(
        "group_norm.default",
        group,
        input=IMAGE,
        num_groups=3,
        weight=SIX,
        bias=SIX,
        eps=EPS,
    ),
    case(
        "native_group_norm.default",
        group_parts,
        input=f32(2, 6, 3, 4),
        weight=SIX,
        bias=SIX,
        N=2,
        C=6,
        HxW=12,
        group=3,
        eps=EPS,
    ),
    case(
        "batch_norm.default",
        batch,
        input=IMAGE,
        weight=SIX,
        bias=SIX,
        running_mean=SIX,
        running_var=POSITIVE,
        training=False,
        **LAST,
        cudnn_enabled=False,
    ),
    case(
        "batch_norm.default",
        batch_plain,
        label="plain",
        input=IMAGE,
        weight=None,
        bias=None,
        running_mean=SIX,
        running_var=POSITIVE,
        training=False,
        **LAST,
        cudnn_enabled=False,
    ),
    case(
        "batch_norm.default",
        lambda x, w, b: own_statistics(x, w, b)[0],
        label="batch",
        input=IMAGE,
        weight=SIX,
        bias=SIX,
        running_mean=None,
        running_var=None,
        training=True,
        **LAST,
        cudnn_enabled=False,
    ),
    case(
        "_native_batch_norm_legit.no_stats",
        own_statistics,
        input=IMAGE,
        weight=SIX,
        bias=SIX,
        training=True,
        **LAST,
    ),
    case(
        "instance_norm.default",
        instance,
        input=IMAGE,
        weight=SIX,
        bias=SIX,
        running_mean=None,
        running_var=None,
        use_input_stats=True,
        **LAST,
        cudnn_enabled=False,
    ),
    case(
        "instance_norm.default",
        instance,
        label="plain",
        input=IMAGE,
        weight=None,
        bias=None,
        running_mean=None,
        running_var=None,
        use_input_stats=True,
        **LAST,
        cudnn_enabled=False,
    ),
    case(
        "instance_norm.default",
        batch,
        label="kept",
        input=IMAGE,
        weight=SIX,
        bias=SIX,
        running_mean=SIX,
        running_var=POSITIVE,
        use_input_stats=False,
        **LAST,
        cudnn_enabled=False,
    ),
    case(
        "_weight_norm.default",
        lambda v, g: weighted(v, g)[0],
        v=f32(5, 3, 4),
        g=f32(5, 1, 1),
    ),
    case(
        "_weight_norm.default",
        lambda v, g: v * (g / np.sqrt((v * v).sum())),
        label="whole",
        v=f32(5, 3, 4),
        g=f32(),
        dim=-1,
    ),
    case("_weight_norm_interface.default", weighted, v=f32(5, 3, 4), g=f32(5, 1, 1)),
)
