"""Arithmetic, comparison, selection and casts."""

import math
from typing import Any

from burn import dtypes
from burn.dtypes import DType
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand

#: Primitives that promote their operands. The result has that dtype, or is a bool.
PROMOTING = frozenset(
    {
        *("add", "sub", "mul", "div", "trunc_div", "pow", "remainder", "fmod"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("maximum", "minimum"),
    }
)
#: Primitives on booleans.
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})


def promoted(w: GraphWriter, *operands: Any) -> list[Operand]:
    """Return operands, which may be Python numbers, in their common dtype."""
    out = w.out[0][1]
    dtype = out if out != dtypes.bool_ else _common(operands)
    return [w.scalar(operand, dtype) for operand in operands]


def _common(operands: Any) -> DType:
    tensors = [operand for operand in operands if isinstance(operand, Operand)]
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = dtypes.promote(dtype, tensor.dtype)
    for operand in operands:
        if isinstance(operand, int | float):
            dtype = dtypes.promote_scalar(dtype, operand)
    return dtype


@form("maximum")
def maximum(w: GraphWriter, x: Any, y: Any) -> Operand:
    return w.node("Max", *promoted(w, x, y))


@form("minimum")
def minimum(w: GraphWriter, x: Any, y: Any) -> Operand:
    return w.node("Min", *promoted(w, x, y))


@form("expm1", "log1p")
def near_zero(w: GraphWriter, x: Operand) -> Operand:
    """Write ``exp(x) - 1`` or ``log(1 + x)``, which ONNX has not as operators.

    Runtimes round it, other than here, where ``x`` is near 0.
    """
    one = w.scalar(1.0, x.dtype)
    if w.primitive == "expm1":
        return w.node("Sub", w.node("Exp", x), one)
    return w.node("Log", w.node("Add", x, one))


@form("not_equal")
def not_equal(w: GraphWriter, x: Any, y: Any) -> Operand:
    return w.node("Not", w.node("Equal", *promoted(w, x, y), dtype=dtypes.bool_))


@form("trunc_div")
def trunc_div(w: GraphWriter, x: Any, y: Any) -> Operand:
    quotient = w.node("Div", *promoted(w, x, y))
    return _truncated(w, quotient)


@form("trunc")
def trunc(w: GraphWriter, x: Operand) -> Operand:
    return _truncated(w, x)


def _truncated(w: GraphWriter, x: Operand) -> Operand:
    if not dtypes.is_float(x.dtype):
        return x
    return w.node("Mul", w.node("Sign", x), w.node("Floor", w.node("Abs", x)))


@form("atan2")
def atan2(w: GraphWriter, y: Any, x: Any) -> Operand:
    """Write atan2 as the arctangent of the ratio of coordinates; 0 at the origin."""
    y, x = promoted(w, y, x)
    steep = w.node("Less", w.node("Abs", x), w.node("Abs", y), dtype=dtypes.bool_)
    part, whole = w.node("Where", steep, x, y), w.node("Where", steep, y, x)

    def number(value: float) -> Operand:
        return w.scalar(value, x.dtype)

    def negative(v: Operand) -> Operand:
        return w.node("Less", v, number(0.0), dtype=dtypes.bool_)

    origin = w.node("Equal", whole, number(0.0), dtype=dtypes.bool_)
    angle = w.node(
        "Atan", w.node("Div", part, w.node("Where", origin, number(1.0), whole))
    )
    right, half = (
        w.node("Where", negative(y), number(-turn), number(turn))
        for turn in (math.pi / 2, math.pi)
    )
    flat = w.node("Where", negative(x), w.node("Add", angle, half), angle)
    return w.node("Where", steep, w.node("Sub", right, angle), flat)


@form("floor_div")
def floor_div(w: GraphWriter, x: Any, y: Any) -> Operand:
    a, b = promoted(w, x, y)
    if dtypes.is_float(a.dtype):
        return w.node("Floor", w.node("Div", a, b))
    return w.node("Div", w.node("Sub", a, w.node("Mod", a, b)), b)


@form("remainder")
def remainder(w: GraphWriter, x: Any, y: Any) -> Operand:
    a, b = promoted(w, x, y)
    if not dtypes.is_float(a.dtype):
        return w.node("Mod", a, b)
    whole = w.node("Floor", w.node("Div", a, b))
    return w.node("Sub", a, w.node("Mul", whole, b))


@form("fmod")
def fmod(w: GraphWriter, x: Any, y: Any) -> Operand:
    return w.node("Mod", *promoted(w, x, y), fmod=1)


@form("cast")
def cast(w: GraphWriter, x: Operand, *, dtype: DType) -> Operand:
    return w.cast(x, dtype)


@form("floor", "ceil", "round")
def rounded(w: GraphWriter, x: Operand) -> Operand:
    if not dtypes.is_float(x.dtype):
        return x
    return w.node({"floor": "Floor", "ceil": "Ceil", "round": "Round"}[w.primitive], x)


@form("where")
def where(w: GraphWriter, condition: Any, x: Any, y: Any) -> Operand:
    return w.node(
        *("Where", w.scalar(condition, dtypes.bool_), *promoted(w, x, y)),
        dtype=w.out[0][1],
    )


@form("clip")
def clip(w: GraphWriter, x: Operand, low: Any = None, high: Any = None) -> Operand:
    dtype = w.out[0][1]
    bounds = [None if b is None else w.scalar(b, dtype) for b in (low, high)]
    x = w.cast(x, dtype)
    if all(b is None or b.shape == () for b in bounds):
        return w.node("Clip", x, *bounds)
    if bounds[0] is not None:
        x = w.node("Max", x, bounds[0])
    return x if bounds[1] is None else w.node("Min", x, bounds[1])


@form("full")
def full(
    w: GraphWriter, shape: Any, value: Any, *, dtype: DType | None = None
) -> Operand:
    return w.node("Expand", w.scalar(value, w.out[0][1]), w.integers(shape))


@form("full_like")
def full_like(
    w: GraphWriter, x: Operand, value: Any, *, dtype: DType | None = None
) -> Operand:
    shape = w.node("Shape", x, dtype=dtypes.int64)
    return w.node("Expand", w.scalar(value, w.out[0][1]), shape)


@form("arange")
def arange(
    w: GraphWriter,
    start: Any,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
) -> Operand:
    if stop is None:
        start, stop = 0, start
    kind = w.out[0][1]
    work = (
        kind if kind in (dtypes.int64, dtypes.int32, dtypes.float32) else dtypes.int64
    )
    bounds = [
        (
            w.node("Reshape", w.scalar(v, work), [])
            if isinstance(v, Operand) and v.shape
            else w.scalar(v, work)
        )
        for v in (start, stop, step)
    ]
    return w.cast(w.node("Range", *bounds), kind)
