"""Reshaping, concatenation, slicing, repetition."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn_import.export.forms.reductions import axes_of
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand, static_integers
from burn_ir.dim import Dim

_LEAST = -(2**63)
_MOST = 2**63 - 1


@form("reshape")
def reshape(
    w: GraphWriter, x: Operand, shape: Any, *, keep_zeros: bool = False
) -> Operand:
    if isinstance(shape, Operand) or any(isinstance(n, Operand) for n in _items(shape)):
        return w.node("Reshape", x, w.integers(shape))
    return to_shape(w, x, w.out[0][0])


def to_shape(w: GraphWriter, x: Operand, shape: tuple[Dim, ...]) -> Operand:
    """Return ``x`` reshaped, with 0 and -1 for symbolic dimensions if possible."""
    target: list[Any] = list(shape)
    if not any(isinstance(n, int) and n == 0 for n in target):
        for axis, extent in enumerate(target):
            same = (
                axis < x.rank
                and not isinstance(extent, int)
                and x.shape[axis] == extent
            )
            target[axis] = 0 if same else extent
        rest = [a for a, n in enumerate(target) if not isinstance(n, int)]
        if len(rest) == 1:
            target[rest[0]] = -1
        if len(rest) > 1:  # a 0 would copy a dimension of the input
            target = list(shape)
        return w.node("Reshape", x, target)
    return w.node("Reshape", x, target, allowzero=1)


def _items(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


@form("flatten")
def flatten(w: GraphWriter, x: Operand, start: int = 0, end: int = -1) -> Operand:
    return to_shape(w, x, w.out[0][0])


@form("expand")
def expand(w: GraphWriter, x: Operand, shape: Any) -> Operand:
    if not isinstance(shape, Operand):  # ONNX has 1 for an extent that stays
        extents = shape.tolist() if isinstance(shape, np.ndarray) else _items(shape)
        shape = [1 if isinstance(n, int) and n == -1 else n for n in extents]
    return w.node("Expand", x, w.integers(shape))


@form("permute")
def permute(w: GraphWriter, x: Operand, axes: Any = None) -> Operand:
    order = range(x.rank - 1, -1, -1) if axes is None else axes_of(w, axes, x.rank)
    return w.node("Transpose", x, perm=list(order))


@form("transpose")
def transpose(w: GraphWriter, x: Operand, first: int, second: int) -> Operand:
    order = list(range(x.rank))
    order[first], order[second] = order[second], order[first]
    return w.node("Transpose", x, perm=order)


@form("squeeze")
def squeeze(w: GraphWriter, x: Operand, axis: Any = None) -> Operand:
    if axis is None:
        axis = tuple(a for a, n in enumerate(x.shape) if n == 1)
    axes = list(axes_of(w, axis, x.rank))
    return w.node("Squeeze", x, axes) if axes else x


@form("unsqueeze")
def unsqueeze(w: GraphWriter, x: Operand, axis: Any) -> Operand:
    return w.node("Unsqueeze", x, list(static_integers(w, axis)))


@form("concat")
def concat(w: GraphWriter, xs: list[Any], axis: int = 0) -> Operand:
    dtype = w.out[0][1]
    return w.node("Concat", *(w.scalar(x, dtype) for x in xs), axis=axis)


@form("stack")
def stack(w: GraphWriter, xs: list[Any], axis: int = 0) -> Operand:
    dtype = w.out[0][1]
    rows = [w.node("Unsqueeze", w.scalar(x, dtype), [axis]) for x in xs]
    return w.node("Concat", *rows, axis=axis)


@form("split")
def split(w: GraphWriter, x: Operand, sizes: Any, axis: int = 0) -> list[Operand]:
    (along,) = static_integers(w, axis)
    if len(w.out) == 1:
        return [x]
    return w.node_of("Split", [x, w.integers(sizes)], len(w.out), axis=along)


@form("chunk")
def chunk(w: GraphWriter, x: Operand, count: int, axis: int = 0) -> list[Operand]:
    sizes = [shape[axis] for shape, _ in w.out]
    pieces: list[Operand] = split(w, x, sizes, axis)
    return pieces


@form("tile")
def tile(w: GraphWriter, x: Operand, repeats: Any) -> Operand:
    return w.node("Tile", x, w.integers(repeats))


@form("pad")
def pad(
    w: GraphWriter,
    x: Operand,
    pads: Any,
    value: Any = 0,
    axes: Any = None,
    *,
    mode: str = "constant",
) -> Operand:
    if mode == "wrap":
        w.require(19, "Pad with mode wrap")
    fill = None
    if mode == "constant" and not (isinstance(value, int | float) and value == 0):
        fill = w.scalar(value, x.dtype)
        if fill.shape:
            fill = w.node("Squeeze", fill)
    if axes is not None and (isinstance(pads, Operand) or w.opset >= 18):
        w.require(18, "Pad with axes")
        along = w.integers(list(axes_of(w, axes, x.rank)))
        return w.node("Pad", x, w.integers(pads), fill, along, mode=mode)
    if axes is not None:
        pads = _of_all_axes(axes_of(w, axes, x.rank), list(pads), x.rank)
    return w.node("Pad", x, w.integers(pads), fill, mode=mode)


def _of_all_axes(axes: tuple[int, ...], pads: list[Any], rank: int) -> list[Any]:
    wide: list[Any] = [0] * (2 * rank)
    for number, axis in enumerate(axes):
        wide[axis], wide[rank + axis] = pads[number], pads[len(axes) + number]
    return wide


@form("flip")
def flip(w: GraphWriter, x: Operand, axis: Any = None) -> Operand:
    axes = list(axes_of(w, axis, x.rank))
    count = len(axes)
    return w.node("Slice", x, [-1] * count, [_LEAST] * count, axes, [-1] * count)


@form("roll")
def roll(w: GraphWriter, x: Operand, shifts: Any, axes: Any) -> Operand:
    for shift, axis in zip(_items(shifts), axes_of(w, axes, x.rank), strict=True):
        extent = x.shape[axis]
        if isinstance(extent, int) and isinstance(shift, int):
            first: Any = [-shift % extent if extent else 0]
        else:
            first = [-shift] if not isinstance(shift, Operand) else w.node("Neg", shift)
        head = w.node("Slice", x, first, [_MOST], [axis])
        tail = w.node("Slice", x, [0], first, [axis])
        joined = w.node("Concat", head, tail, axis=axis)
        x = Operand(joined.name, x.shape, x.dtype)
    return x


@form("trilu")
def trilu(w: GraphWriter, x: Operand, k: Any = 0, *, upper: bool = True) -> Operand:
    diagonal = w.scalar(k, dtypes.int64)
    return w.node("Trilu", x, diagonal, upper=int(upper))


@form("shape")
def shape(w: GraphWriter, x: Operand) -> Operand:
    return w.node("Shape", x, dtype=dtypes.int64)


@form("size")
def size(w: GraphWriter, x: Operand) -> Operand:
    return w.node("Size", x, dtype=dtypes.int64)


@form("array")
def array(w: GraphWriter, values: Any, *, dtype: DType = dtypes.int64) -> Operand:
    if not isinstance(values, list | tuple):
        return w.scalar(values, dtype)
    if all(isinstance(value, int | float) for value in values):
        return w.constant(np.asarray(values, dtype))
    return w.cast(w.integers(values), dtype)


@form("eye")
def eye(
    w: GraphWriter,
    rows: Any,
    columns: Any = None,
    k: Any = 0,
    *,
    dtype: DType = dtypes.float32,
) -> Operand:
    extents = [rows, rows if columns is None else columns]
    zeros = w.node("Expand", w.scalar(0, dtype), w.integers(extents))
    (diagonal,) = static_integers(w, k)
    return w.node("EyeLike", zeros, k=diagonal)
