"""Differences that are explained: where onnxruntime is no reference for a node.

A rule is about one operator and what its operands hold. The generator adds no node that
a rule of ``RULES`` matches, so that no other failure hides behind it. For operands with
NaN or infinities there is :mod:`tests.fuzz.rules.not_finite`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from tests.fuzz.rules.axes import (
    copies_computed_zeros,
    drops_axes,
    has_equal_attribute_axes,
    has_equal_axes,
)
from tests.fuzz.rules.close import (
    SCALES,
    compares_close_elements,
    divides_by_rounding,
    drops_squares,
    has_close_elements,
    has_close_scores,
    has_large_negatives,
    has_powers_of_rounded_zeros,
    has_rounded_zeros,
    leaves_domain,
    rounds_between_integers,
    rounds_close_elements,
    rounds_mean_by_epsilon,
    samples_between_elements,
)
from tests.fuzz.rules.invalid import INVALID, REDUCTIONS
from tests.fuzz.rules.texts import gathers_rows_of_text, stacks_texts
from tests.fuzz.rules.ties import rounds_between_scales

#: The contents of the operands of a node; None for one that is omitted.
Operands = Sequence[Any]
COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


@dataclass(frozen=True)
class Rule:
    """Nodes of ``operator`` for which ``matches``; ``reason`` cites why."""

    operator: str
    matches: Callable[[NodeProto, Operands], bool]
    reason: str


def _has_odd_condition(node: NodeProto, operands: Operands) -> bool:
    data, condition = operands
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    if axis is not None and not -data.ndim <= axis < data.ndim:
        return True
    length = data.size if axis is None else data.shape[axis]
    return bool(condition.ndim != 1 or len(condition) > length)


def _saves_statistics(node: NodeProto, operands: Operands) -> bool:
    return len(node.output) > 3


def _has_no_rounds(node: NodeProto, operands: Operands) -> bool:
    trips, going = operands[:2]
    none = trips is not None and int(np.asarray(trips).ravel()[0]) < 1
    return none or (going is not None and not np.asarray(going).all())


def _dilates_volumes(node: NodeProto, operands: Operands) -> bool:
    given = [n for a in node.attribute if a.name == "dilations" for n in a.ints]
    return len(given) > 2 and max(given) > 1


def _has_half_scale(node: NodeProto, operands: Operands) -> bool:
    return bool(operands[1].dtype != np.float32)


def _has_output_shape(node: NodeProto, operands: Operands) -> bool:
    return len(operands) > 2 and operands[2] is not None


def _strides_beyond_kernel(node: NodeProto, operands: Operands) -> bool:
    """Return whether the windows of a transposed convolution leave gaps."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    automatic = given.get("auto_pad") in (b"SAME_UPPER", b"SAME_LOWER")
    if not automatic or "output_shape" in given:
        return False
    kernel = operands[1].shape[2:]
    strides = given.get("strides", [1] * len(kernel))
    dilations = given.get("dilations", [1] * len(kernel))
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=False)]
    return any(span < s for span, s in zip(spans, strides, strict=False))


def _joins_empty(node: NodeProto, operands: Operands) -> bool:
    if any(x.ndim == 0 for x in operands):
        return True  # scalars have no axis to join
    axis = next(a.i for a in node.attribute if a.name == "axis")
    rests = {tuple(np.delete(x.shape, axis % x.ndim).tolist()) for x in operands}
    return len(rests) > 1


def _resizes_half_spectrum(node: NodeProto, operands: Operands) -> bool:
    """Return whether half a spectrum has another count of frequencies than needed."""
    flags = {a.name: a.i for a in node.attribute}
    halved = flags.get("inverse") and flags.get("onesided")
    if not halved or len(operands) < 2 or operands[1] is None:
        return False
    axes = [1, -2] if "axis" not in flags else [flags["axis"]]  # by version
    if len(operands) > 2 and operands[2] is not None:
        axes = np.ravel(operands[2]).tolist()
    frequencies = int(np.ravel(operands[1])[0]) // 2 + 1
    shape = operands[0].shape
    return any(shape[axis % len(shape)] != frequencies for axis in axes if shape)


def _has_odd_scale(node: NodeProto, operands: Operands) -> bool:
    """Return whether onnxruntime's table of exponentials cannot hold the result."""
    if operands[1].size != 1 or operands[3].size != 1:
        return True
    x_scale, y_scale = (float(operands[i].item()) for i in (1, 3))
    if not (np.isfinite([x_scale, y_scale]).all() and min(x_scale, y_scale) > 0):
        return True
    steps = float(np.float32(1) / np.float32(y_scale))
    given = len(operands) > 4 and operands[4] is not None
    zero = int(operands[4].ravel()[0]) if given else 0
    wraps = operands[0].dtype == np.int8 and steps + zero > 127
    return steps != np.floor(steps) or wraps


def _transposes_beside_vector(node: NodeProto, operands: Operands) -> bool:
    flags = {a.name: a.i for a in node.attribute}
    return bool(flags.get("transA")) and operands[1].ndim == 1


def _averages_nothing(node: NodeProto, operands: Operands) -> bool:
    return bool(operands[0].size == 0)


def _returns_body_inputs(node: NodeProto, operands: Operands) -> bool:
    body = next(a.g for a in node.attribute if a.name == "body")
    return bool({x.name for x in body.input} & {y.name for y in body.output})


def _slices_back_to_the_largest(node: NodeProto, operands: Operands) -> bool:
    if len(operands) < 5 or operands[4] is None:
        return False
    ends, steps = operands[2], operands[4]
    if ends.shape != steps.shape:
        return True
    largest = [np.iinfo(kind).max for kind in (np.int32, np.int64)]
    return bool((np.isin(ends, largest) & (steps < 0)).any())


def _overflows(node: NodeProto, operands: Operands) -> bool:
    """Return whether a sum of absolute integers overflows their dtype."""
    data = operands[0]
    if data.dtype.kind not in "iu":
        return False
    power = 2 if node.op_type in ("ReduceL2", "ReduceSumSquare") else 1
    total = (np.abs(data.astype(np.float64)) ** power).sum()
    return bool(total > np.iinfo(data.dtype).max)


RULES = (
    *(
        Rule(operator, matches, reason)
        for operators, matches, reason in INVALID
        for operator in operators
    ),
    Rule(
        "Compress",
        _has_odd_condition,
        "`condition`: `Rank 1 tensor of booleans`, whose `length can be less than the "
        "input length`; onnxruntime reads any rank and ignores what is too long",
    ),
    Rule(
        "Concat",
        _joins_empty,
        "`All input tensors must have the same shape, except for the dimension size of "
        "the axis to concatenate on`; onnxruntime skips those without elements",
    ),
    Rule(
        "MaxUnpool",
        _has_output_shape,
        "the indices count what was pooled, not `output_shape`",
    ),
    Rule(
        "BatchNormalization",
        _saves_statistics,
        "`saved_var`, before version 14, is `Saved variance`; onnxruntime gives the "
        "reciprocal of its root",
    ),
    Rule(
        "ConvTranspose",
        _strides_beyond_kernel,
        "`SAME_UPPER or SAME_LOWER mean pad the input so that output_shape[i] = "
        "input_shape[i] * strides[i]`; onnxruntime pads by no less than 0, and leaves "
        "out what lies behind the last window",
    ),
    Rule(
        "LRN",
        drops_squares,
        "`square_sum` is of the channels around; onnxruntime adds the next to a "
        "running sum and subtracts the last, whose rounding remains",
    ),
    Rule(
        "Loop",
        _has_no_rounds,
        "rows of a loop without rounds have no extents that onnxruntime knows",
    ),
    Rule(
        "Scan",
        _returns_body_inputs,
        "`scan_output_element` of a step is the value of that output of the body; "
        "onnxruntime does not write it if the body does not compute it",
    ),
    Rule(
        "Gather",
        gathers_rows_of_text,
        "`output[i_0, ..., j_0, ...] = input[k, j_0, ...]`; of texts, onnxruntime "
        "copies the first one of each row alone",
    ),
    *(
        Rule(
            operator,
            stacks_texts,
            "`Each scan_output is created by concatenating the value of the specified "
            "output value at the end of each iteration of the loop`; of texts, "
            "onnxruntime keeps those of the first one alone",
        )
        for operator in ("If", "Loop", "Scan", "SequenceMap")
    ),
    Rule(
        "Slice",
        _slices_back_to_the_largest,
        "`end` is `clamped to [-1, dims[axes[i]]-1] for negative stepping`; "
        "onnxruntime takes the largest integer, of 32 bits too, as the axis's start",
    ),
    Rule(
        "Sigmoid",
        has_large_negatives,
        "`y = 1 / (1 + exp(-x))`; onnxruntime's polynomial is 0 below -18, and an "
        "error of 1e-8 is all of the result",
    ),
    *(
        Rule(operator, has_rounded_zeros, "rounding tells whether elements are 0")
        for operator in (
            *("Log", "LpNormalization", "NonZero", "Normalizer", "Reciprocal", "Sign"),
            "Sqrt",
        )
    ),
    Rule(
        "Col2Im",
        _dilates_volumes,
        "block elements are dilated along every axis, of volumes too",
    ),
    Rule(
        "DFT",
        _resizes_half_spectrum,
        "`only values for k in [0, 1, 2, ..., floor(n_fft/2) + 1] are used`; "
        "onnxruntime mirrors the other ones as well",
    ),
    Rule(
        "QLinearSoftmax",
        _has_odd_scale,
        "`Softmax(input, axis) = Exp(input) / ReduceSum(Exp(input))`, then quantized; "
        "onnxruntime multiplies by 1 / Y_scale rounded down, wraps int8 around, and "
        "has no exponentials for scales that are not positive",
    ),
    *(
        Rule(
            operator,
            _transposes_beside_vector,
            "`transA`: A is `transposed on the last two dimensions before doing "
            "multiplication`; onnxruntime does not do so beside a vector",
        )
        for operator in ("FusedMatMul", "TransposeMatMul")
    ),
    Rule(
        "ReduceMean",
        _averages_nothing,
        "`Reduction over an empty set of values yields undefined`",
    ),
    Rule(
        "Reshape",
        copies_computed_zeros,
        "a 0 is `taken from the input tensor`, by onnxruntime also where a computed "
        "extent is 0, of a tensor without elements: it stays 0 here, as it does in the "
        "PyTorch programs that such graphs are exported from",
    ),
    *(
        Rule(
            f"Reduce{name}",
            _overflows,
            "an overflow of integers has no specified result: it wraps around here, as "
            "in NumPy, and in onnxruntime depends on the axes",
        )
        for name in ("L1", "L2", "LogSum", "Mean", "Sum", "SumSquare")
    ),
    Rule(
        "InstanceNormalization",
        rounds_mean_by_epsilon,
        "`scale * (x - mean) / sqrt(variance + epsilon) + B`; onnxruntime adds the "
        "rounded `B - mean * scale / sqrt(variance + epsilon)` to the product with `x`",
    ),
    Rule("Pow", has_powers_of_rounded_zeros, "rounding tells the sign of a number"),
    *(
        Rule(
            operator, leaves_domain, "rounding tells whether elements are in the domain"
        )
        for operator in ("Acos", "Acosh", "Asin", "Atanh")
    ),
    *(
        Rule(operator, rounds_close_elements, "rounding tells which integer is nearest")
        for operator in ("Cast", "Ceil", "Floor", "Round")
    ),
    *(
        Rule(operator, has_close_elements, "rounding tells which elements are equal")
        for operator in ("Unique", "Hardmax", "ArgMax", "ArgMin", "TopK")
    ),
    Rule("NonMaxSuppression", has_close_scores, "rounding tells which score is higher"),
    Rule(
        "GridSample",
        samples_between_elements,
        "`nearest`: rounding tells which element is",
    ),
    *(
        Rule(
            operator,
            divides_by_rounding,
            "`y = saturate((x / y_scale) + y_zero_point)` is infinite before it "
            "saturates; rounding tells the sign of a scale near 0, and onnxruntime "
            "makes an integer of what it divides by 0",
        )
        for operator in SCALES
    ),
    *(
        Rule(operator, rounds_between_scales, "rounding tells which is nearest")
        for operator in SCALES
        if operator != "QuantizeLinear"
    ),
    *(
        Rule(operator, rounds_between_integers, "rounding tells which is nearest")
        for operator in ("DynamicQuantizeLinear", "QuantizeLinear")
    ),
    *(
        Rule(operator, compares_close_elements, "rounding tells which is larger")
        for operator in COMPARISONS
    ),
    Rule(
        "QuantizeLinear",
        _has_half_scale,
        "the type of `y_scale` or the attribute `precision` determines the precision "
        "of the division; onnxruntime divides in float32",
    ),
    Rule(
        "SplitToSequence",
        drops_axes,
        "keepdims is ignored if split is specified",
    ),
    *(
        Rule(
            operator,
            matches,
            "an axis that is named twice has no meaning; onnxruntime takes it once",
        )
        for operator in ("Squeeze", *REDUCTIONS)
        for matches in (has_equal_axes, has_equal_attribute_axes)
    ),
)


def explanation(node: NodeProto, operands: Operands) -> str | None:
    """Return why onnxruntime is no reference for ``node``, else None."""
    for rule in RULES:
        if rule.operator == node.op_type and rule.matches(node, operands):
            return rule.reason
    return None
