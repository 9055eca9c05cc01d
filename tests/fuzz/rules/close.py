"""Operands of which rounding tells what a node makes: conditions of rules."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, helper

Operands = Sequence[Any]

#: More steps of a scale than integers of 16 bits have: they saturate.
MOST_STEPS = 2**16
#: What a cast rounds to.
INTEGERS = [
    helper.np_dtype_to_tensor_dtype(np.dtype(f"{sign}int{bits}"))
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
]
#: Where operators that quantize have the scale of their result.
SCALES = {
    "QGemm": 7,
    "QLinearAdd": 6,
    "QLinearAveragePool": 3,
    "QLinearConcat": 0,
    "QLinearConv": 6,
    "QLinearGlobalAveragePool": 3,
    "QLinearLeakyRelu": 3,
    "QLinearMatMul": 6,
    "QLinearMul": 6,
    "QLinearReduceMean": 3,
    "QLinearSigmoid": 3,
    "QLinearWhere": 7,
    "QuantizeLinear": 1,
}


def _is_within_rounding(steps: Any, sizes: Any, dtype: Any, largest: float) -> bool:
    """Return whether differences of elements are those that rounding may make.

    They are up to about 100 roundings of the elements, or 8 of the largest element: a
    sum whose terms cancel has the error of its terms.
    """
    eps = float(np.finfo(dtype).eps)
    slack = np.maximum(100 * eps * sizes, 8 * eps * largest)
    return bool(((steps > 0) & (steps <= slack)).any())


def has_close_elements(node: NodeProto, operands: Operands) -> bool:
    """Return whether elements differ by no more than rounding."""
    data = operands[0]
    if data.dtype.kind != "f":
        return False
    ordered = np.sort(data[np.isfinite(data)].astype(np.float64), None)
    sizes = np.abs(ordered)
    largest = sizes.max(initial=0)
    return _is_within_rounding(np.diff(ordered), sizes[1:], data.dtype, largest)


def has_close_scores(node: NodeProto, operands: Operands) -> bool:
    """Return whether rounding determines the order of boxes of a batch and class."""
    scores = np.atleast_1d(operands[1])  # onnxruntime refuses a scalar
    return any(
        has_close_elements(node, [row])
        for row in scores.reshape(-1, max(1, scores.shape[-1]))
    )


def samples_between_elements(node: NodeProto, operands: Operands) -> bool:
    """Return whether rounding tells which element is nearest to a point of a grid."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x, grid = operands[:2]
    if attributes.get("mode") != b"nearest" or grid.dtype.kind != "f":
        return False
    extents = np.array(x.shape[:1:-1], np.float64)
    if grid.shape[-1:] != extents.shape:
        return False  # onnxruntime refuses them
    places = (grid[np.isfinite(grid).all(-1)].astype(np.float64) + 1) / 2
    if attributes.get("align_corners", 0):
        places = places * (extents - 1)
    else:
        places = places * extents - 0.5
    steps = np.abs(places - np.floor(places) - 0.5)
    sizes = np.maximum(np.abs(places), 1)
    return _is_within_rounding(steps, sizes, grid.dtype, 1)


def divides_by_rounding(node: NodeProto, operands: Operands) -> bool:
    """Return whether a quantized result's scale is at most a rounding of 1."""
    place = SCALES[node.op_type]
    scale = operands[place] if place < len(operands) else None
    if scale is None:
        return False  # the result is not quantized
    small = np.abs(scale.astype(np.float64)) <= np.finfo(np.float32).eps
    return bool(small.any())


def rounds_close_elements(node: NodeProto, operands: Operands) -> bool:
    """Return whether rounding tells which integer an element becomes.

    An integer itself, or what is in the middle between two, is meant to be it.
    """
    x = operands[0]
    targets = [a.i for a in node.attribute if a.name == "to"]
    is_kept = bool(targets) and targets[0] not in INTEGERS
    if x.dtype.kind != "f" or is_kept:
        return False
    wide = x[np.isfinite(x)].astype(np.float64)
    middle = 0.5 if node.op_type == "Round" else 0.0
    steps = np.abs(wide - middle - np.rint(wide - middle))
    sizes = np.abs(wide)
    return _is_within_rounding(steps, sizes, x.dtype, sizes.max(initial=0))


def leaves_domain(node: NodeProto, operands: Operands) -> bool:
    """Return whether elements differ from 1 or -1 by no more than rounding."""
    x = operands[0]
    if x.dtype.kind != "f":
        return False
    steps = np.abs(np.abs(x[np.isfinite(x)].astype(np.float64)) - 1)
    return _is_within_rounding(steps, np.ones_like(steps), x.dtype, 1)


def has_powers_of_rounded_zeros(node: NodeProto, operands: Operands) -> bool:
    """Return whether rounding determines the sign of a divisor or a root's operand."""
    exponents = operands[1].astype(np.float64)
    whole = (exponents == np.rint(exponents)) & (exponents >= 0)
    return not whole.all() and has_rounded_zeros(node, operands)


def rounds_between_integers(node: NodeProto, operands: Operands) -> bool:
    """Return whether rounding determines the integer nearest to an element.

    So it is within four roundings of the middle between two.
    """
    x = operands[0].astype(np.float64)
    x = x[np.isfinite(x)]
    if node.op_type == "DynamicQuantizeLinear":
        scale = (x.max(initial=0) - x.min(initial=0)) / 255
    else:
        scale = operands[1].astype(np.float64)
    if np.size(scale) != 1 or not abs(scale) > 0:
        return False
    steps = np.abs(x / scale)
    steps = steps[steps < MOST_STEPS]
    middle = np.abs(steps - np.floor(steps) - 0.5)
    slack = 4 * float(np.finfo(np.float32).eps) * np.maximum(steps, 1)
    return bool(((middle > 0) & (middle <= slack)).any())


def compares_close_elements(node: NodeProto, operands: Operands) -> bool:
    """Return whether elements of two operands differ by no more than rounding."""
    x, y = operands[:2]
    if x.dtype.kind != "f":
        return False
    try:
        first, second = np.broadcast_arrays(x.astype(np.float64), y.astype(np.float64))
    except ValueError:
        return False  # onnxruntime refuses them
    finite = np.isfinite(first) & np.isfinite(second)
    first, second = first[finite], second[finite]
    sizes = np.maximum(np.abs(first), np.abs(second))
    steps = np.abs(first - second)
    return _is_within_rounding(steps, sizes, x.dtype, sizes.max(initial=0))


def has_large_negatives(node: NodeProto, operands: Operands) -> bool:
    """Return whether onnxruntime's sigmoid polynomial has no accurate digits."""
    data = operands[0]
    limit = -30 if data.dtype == np.float64 else -14
    return data.dtype.kind == "f" and bool((data < limit).any())


def has_rounded_zeros(node: NodeProto | None, operands: Operands) -> bool:
    """Return whether elements are at most 8 roundings of the largest one, or of 1.

    So they are at the ends of a window, which is the sum of terms that cancel.
    """
    data = operands[0]
    if data.dtype.kind != "f" or not data.size:
        return False
    sizes = abs(data[np.isfinite(data)])
    slack = 8 * float(np.finfo(data.dtype).eps) * sizes.max(initial=1)
    return bool(((sizes > 0) & (sizes <= slack)).any())


def rounds_mean_by_epsilon(node: NodeProto, operands: Operands) -> bool:
    """Return whether the mean's rounding is large beside ``sqrt(var + epsilon)``."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x = np.where(np.isfinite(operands[0]), operands[0], 0).astype(np.float64)
    if x.ndim < 3 or not x.size:
        return False
    rows = x.reshape(*x.shape[:2], -1)
    width = np.sqrt(rows.var(-1) + given.get("epsilon", 1e-5))
    error = float(np.finfo(operands[0].dtype).eps) * np.abs(rows).max(-1)
    return bool((error > 1e-5 * width).any())


def drops_squares(node: NodeProto, operands: Operands) -> bool:
    """Return whether rounding of earlier channels' squares exceeds the divisor."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x = operands[0]
    if x.ndim < 2 or not x.size:
        return False
    bias, size = given.get("bias", 1.0), given["size"]
    factor = given.get("alpha", 1e-4) / size
    squares = np.where(np.isfinite(x), x, 0).astype(np.float64) ** 2
    around = np.zeros_like(squares)
    for step in range(-((size - 1) // 2), size // 2 + 1):
        moved = np.roll(squares, -step, 1)
        moved[:, -step if step > 0 else 0 : None if step > 0 else -step] = 0
        around += moved
    added = np.minimum(np.arange(x.shape[1]) + size // 2, x.shape[1] - 1)
    largest = np.maximum.accumulate(squares, 1)[:, added]
    slack = float(np.finfo(np.float32).eps) * factor * largest
    return bool((slack > 1e-5 * (bias + factor * around)).any())
