"""Normalization."""

from typing import Any

import numpy as np

from burn import dtypes
from burn_import.export.forms.reductions import axes_of, reduce
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand


def _filled(w: GraphWriter, number: float, shape: Any, like: Operand) -> Operand:
    return w.constant(np.full(shape, number).astype(like.dtype))


@form("batch_norm")
def batch_norm(
    w: GraphWriter,
    x: Operand,
    mean: Operand,
    var: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    *,
    epsilon: float = 1e-5,
) -> Operand:
    weight = weight or _filled(w, 1.0, mean.shape, mean)
    bias = bias or _filled(w, 0.0, mean.shape, mean)
    return w.node("BatchNormalization", x, weight, bias, mean, var, epsilon=epsilon)


@form("group_norm")
def group_norm(
    w: GraphWriter,
    x: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    *,
    groups: int,
    epsilon: float = 1e-5,
) -> Operand:
    channels = x.shape[1]
    if w.opset >= 21 and isinstance(channels, int):
        weight = weight or _filled(w, 1.0, (channels,), x)
        bias = bias or _filled(w, 0.0, (channels,), x)
        options: dict[str, Any] = {"num_groups": groups, "epsilon": epsilon}
        return w.node("GroupNormalization", x, weight, bias, **options)
    inner = w.node("Reshape", x, [0, groups, -1])
    scale, shift = _filled(w, 1.0, (groups,), x), _filled(w, 0.0, (groups,), x)
    normal = w.node("InstanceNormalization", inner, scale, shift, epsilon=epsilon)
    out = w.node("Reshape", normal, w.node("Shape", x, dtype=dtypes.int64))
    inner_axes = list(range(1, x.rank - 1))
    for op, operand in (("Mul", weight), ("Add", bias)):
        if operand is not None:
            wide = w.node("Unsqueeze", operand, inner_axes) if inner_axes else operand
            out = w.node(op, out, wide)
    return out


@form("instance_norm")
def instance_norm(
    w: GraphWriter,
    x: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    *,
    epsilon: float = 1e-5,
) -> Operand:
    channels = x.shape[1]
    if not isinstance(channels, int) and (weight is None or bias is None):
        raise w.refuse("has no form for a varying number of channels without weights")
    weight = weight or _filled(w, 1.0, (channels,), x)
    bias = bias or _filled(w, 0.0, (channels,), x)
    return w.node("InstanceNormalization", x, weight, bias, epsilon=epsilon)


def _feature_axes(w: GraphWriter, axis: Any, rank: int) -> tuple[int, ...]:
    """Return the normalized axes: those in a tuple, or all from an integer on."""
    if isinstance(axis, int):
        return tuple(range(axis % rank, rank))
    return axes_of(w, axis, rank)


def _is_trailing(axes: tuple[int, ...], rank: int) -> bool:
    return sorted(axes) == list(range(rank - len(axes), rank))


@form("layer_norm")
def layer_norm(
    w: GraphWriter,
    x: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    *,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> Operand:
    axes = _feature_axes(w, axis, x.rank)
    features = x.shape[x.rank - len(axes) :]
    fits = all(v is None or v.shape == features for v in (weight, bias))
    if _is_trailing(axes, x.rank) and all(isinstance(n, int) for n in features):
        scale = weight if fits and weight is not None else _filled(w, 1.0, features, x)
        shift = bias if fits else None
        out = w.node(
            *("LayerNormalization", x, w.cast(scale, x.dtype)),
            None if shift is None else w.cast(shift, x.dtype),
            axis=x.rank - len(axes),
            epsilon=epsilon,
        )
        return out if fits else _affine(w, out, weight, bias)
    work = _accumulated(w, x)
    centered = w.node("Sub", work, reduce(w, "ReduceMean", work, axes, True))
    return _affine(
        w, w.cast(_divide_by_rms(w, centered, axes, epsilon), x.dtype), weight, bias
    )


@form("rms_norm")
def rms_norm(
    w: GraphWriter,
    x: Operand,
    weight: Operand | None = None,
    *,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> Operand:
    axes = _feature_axes(w, axis, x.rank)
    features = x.shape[x.rank - len(axes) :]
    if w.opset >= 23 and weight is not None and weight.shape == features:
        options: dict[str, Any] = {"axis": x.rank - len(axes), "epsilon": epsilon}
        if _is_trailing(axes, x.rank):
            return w.node("RMSNormalization", x, weight, **options)
    out = w.cast(_divide_by_rms(w, _accumulated(w, x), axes, epsilon), x.dtype)
    return _affine(w, out, weight, None)


def _accumulated(w: GraphWriter, x: Operand) -> Operand:
    return w.cast(x, dtypes.float32) if x.dtype in dtypes.HALVES else x


def _divide_by_rms(
    w: GraphWriter, x: Operand, axes: tuple[int, ...], epsilon: float
) -> Operand:
    """Return ``x`` divided by its root mean square."""
    power = reduce(w, "ReduceMean", w.node("Mul", x, x), axes, True)
    total = w.node("Add", power, w.scalar(epsilon, x.dtype))
    return w.node("Div", x, w.node("Sqrt", total))


def _affine(
    w: GraphWriter, x: Operand, weight: Operand | None, bias: Operand | None
) -> Operand:
    if weight is not None:
        x = w.node("Mul", x, w.cast(weight, x.dtype))
    return x if bias is None else w.node("Add", x, w.cast(bias, x.dtype))


@form("lrn")
def lrn(w: GraphWriter, x: Operand, **options: Any) -> Operand:
    return w.node("LRN", x, **options)
