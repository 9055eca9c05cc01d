"""Activations that are missing in some opsets, and softmax over several axes."""

from math import sqrt
from typing import Any

from burn import dtypes
from burn_import.export.forms.reductions import axes_of, reduce
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand


@form("silu")
def silu(w: GraphWriter, x: Operand) -> Operand:
    return w.node("Mul", x, w.node("Sigmoid", x))


@form("mish")
def mish(w: GraphWriter, x: Operand) -> Operand:
    if w.opset >= 18:
        return w.node("Mish", x)
    return w.node("Mul", x, w.node("Tanh", w.node("Softplus", x)))


@form("gelu")
def gelu(w: GraphWriter, x: Operand, *, approximate: str = "none") -> Operand:
    if w.opset >= 20:
        return w.node("Gelu", x, approximate=approximate)

    def number(value: float) -> Operand:
        return w.scalar(value, x.dtype)

    if approximate == "none":
        inner = w.node("Erf", w.node("Div", x, number(sqrt(2.0))))
    else:
        cube = w.node("Mul", w.node("Mul", x, x), x)
        total = w.node("Add", x, w.node("Mul", cube, number(0.044715)))
        inner = w.node("Tanh", w.node("Mul", total, number(0.7978845608028654)))
    return w.node(
        "Mul", w.node("Mul", x, w.node("Add", inner, number(1.0))), number(0.5)
    )


@form("softmax", "log_softmax")
def softmax(w: GraphWriter, x: Operand, *, axis: Any = -1) -> Operand:
    operator = "Softmax" if w.primitive == "softmax" else "LogSoftmax"
    axes = axes_of(w, axis, x.rank)
    if len(axes) == 1:
        return w.node(operator, x, axis=axes[0])
    shifted = w.node("Sub", x, reduce(w, "ReduceMax", x, axes, True))
    total = reduce(w, "ReduceSum", w.node("Exp", shifted), axes, True)
    if operator == "Softmax":
        return w.node("Div", w.node("Exp", shifted), total)
    return w.node("Sub", shifted, w.node("Log", total))


@form("masked_softmax")
def masked_softmax(w: GraphWriter, x: Operand) -> Operand:
    """Write a softmax that is 0 in rows with only minus infinity."""
    largest = reduce(w, "ReduceMax", x, (x.rank - 1,), True)
    infinite = w.node(
        "IsInf", w.cast(largest, dtypes.float32), dtype=dtypes.bool_, detect_positive=0
    )
    zero = w.scalar(0.0, x.dtype)
    weights = w.node(
        "Softmax", w.node("Where", infinite, zero, x, dtype=x.dtype), axis=-1
    )
    return w.node("Where", infinite, zero, weights, dtype=x.dtype)
