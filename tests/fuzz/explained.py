"""Differences that are explained: where onnxruntime is no judge of a node.

A rule is about one operator and what its operands hold. The generator adds no node that
a rule of ``RULES`` matches, so that no other failure hides behind it. ``NOT_FINITE`` is
about operands with NaN or infinities: there the graph without passes is the judge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

#: The contents of the operands of a node; None for one that is omitted.
Operands = Sequence[Any]


@dataclass(frozen=True)
class Rule:
    """Nodes of ``operator`` for which ``matches``; ``reason`` cites why."""

    operator: str
    matches: Callable[[NodeProto, Operands], bool]
    reason: str


def _has_equal_axes(node: NodeProto, operands: Operands) -> bool:
    if len(operands) < 2 or operands[1] is None:
        return False
    axes = np.asarray(operands[1]).ravel() % max(1, operands[0].ndim)
    return len(set(axes.tolist())) < len(axes)


def _has_equal_attribute_axes(node: NodeProto, operands: Operands) -> bool:
    given = [axis for a in node.attribute if a.name == "axes" for axis in a.ints]
    return len({axis % max(1, operands[0].ndim) for axis in given}) < len(given)


def _aligns_scaled_corners(node: NodeProto, operands: Operands) -> bool:
    modes = [a.s for a in node.attribute if a.name == "coordinate_transformation_mode"]
    place = 1 if node.op_type == "Upsample" else 2
    scales = operands[place] if len(operands) > place else None
    return modes == [b"align_corners"] and scales is not None and len(scales) > 0


def _has_odd_condition(node: NodeProto, operands: Operands) -> bool:
    data, condition = operands
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    if axis is not None and not -data.ndim <= axis < data.ndim:
        return True
    length = data.size if axis is None else data.shape[axis]
    return bool(condition.ndim != 1 or len(condition) > length)


def _has_statistics(node: NodeProto, operands: Operands) -> bool:
    return len(node.output) > 1


def _has_no_rounds(node: NodeProto, operands: Operands) -> bool:
    trips, going = operands[:2]
    none = trips is not None and int(np.asarray(trips).ravel()[0]) < 1
    return none or (going is not None and not np.asarray(going).all())


def _dilates_volumes(node: NodeProto, operands: Operands) -> bool:
    given = [n for a in node.attribute if a.name == "dilations" for n in a.ints]
    return len(given) > 2 and max(given) > 1


def _has_half_scale(node: NodeProto, operands: Operands) -> bool:
    return bool(operands[1].dtype != np.float32)


def _drops_axes(node: NodeProto, operands: Operands) -> bool:
    keeps = [a.i for a in node.attribute if a.name == "keepdims"]
    return keeps == [0] and len(operands) > 1


def _has_output_shape(node: NodeProto, operands: Operands) -> bool:
    return len(operands) > 2 and operands[2] is not None


def _joins_empty(node: NodeProto, operands: Operands) -> bool:
    axis = next(a.i for a in node.attribute if a.name == "axis")
    rests = {tuple(np.delete(x.shape, axis % x.ndim).tolist()) for x in operands}
    return len(rests) > 1


def _has_other_batches(node: NodeProto, operands: Operands) -> bool:
    count = next((a.i for a in node.attribute if a.name == "batch_dims"), 0)
    return bool(operands[0].shape[:count] != operands[1].shape[:count])


REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min")
    + ("Prod", "Sum", "SumSquare")
)

RULES = (
    # Open, not explained: the average is rounded in another order than by onnxruntime,
    # and one step apart where it is half way between two integers.
    *(
        Rule(operator, lambda *_: True, "open: quantized averages half way")
        for operator in ("QLinearAveragePool", "QLinearGlobalAveragePool")
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
        "GatherND",
        _has_other_batches,
        "`batch_dims` leading axes of both operands are equal; onnxruntime does not "
        "compare them and reads what is behind the last batch",
    ),
    Rule(
        "MaxUnpool",
        _has_output_shape,
        "the indices count what was pooled, not `output_shape`",
    ),
    Rule(
        "BatchNormalization",
        _has_statistics,
        "onnxruntime may write running statistics over their operands while others "
        "still read these, and before version 14 `saved_var` is inverse to it",
    ),
    Rule(
        "Loop",
        _has_no_rounds,
        "rows of a loop without rounds have no extents that onnxruntime knows",
    ),
    Rule(
        "Col2Im",
        _dilates_volumes,
        "block elements are dilated along every axis, of volumes too",
    ),
    Rule(
        "QuantizeLinear",
        _has_half_scale,
        "the type of `y_scale` or the attribute `precision` determines the precision "
        "of the division; onnxruntime divides in float32",
    ),
    Rule(
        "SplitToSequence",
        _drops_axes,
        "keepdims is ignored if split is specified",
    ),
    *(
        Rule(
            operator,
            matches,
            "an axis that is named twice has no meaning; onnxruntime takes it once",
        )
        for operator in ("Squeeze", *REDUCTIONS)
        for matches in (_has_equal_axes, _has_equal_attribute_axes)
    ),
    Rule(
        "Resize",
        _aligns_scaled_corners,
        "`align_corners` is about the extents of the output, which are whole numbers; "
        "onnxruntime does not round input * scale before",
    ),
)

#: Operators that onnxruntime computes otherwise from NaN or infinite operands.
NOT_FINITE = {
    "ArgMax": "NaN is never larger, or always",
    "ArgMin": "NaN is never smaller, or always",
    "Attention": "what a mask hides is multiplied by 0, or is not read",
    "Conv": "padding is multiplied by weights, or is left out",
    "ConvTranspose": "padding is multiplied by weights, or is left out",
    "GridSample": "infinities outside are multiplied by 0, or are not read",
    "GroupQueryAttention": "what a mask hides is multiplied by 0, or is not read",
    "Hardmax": "NaN is never larger, or always",
    "InstanceNormalization": "infinities are subtracted from each other, or are not",
    "MultiHeadAttention": "what a mask hides is multiplied by 0, or is not read",
    "NegativeLogLikelihoodLoss": "what is ignored is multiplied by 0, or is not read",
    "Normalizer": "NaN is never larger, or always",
    "Range": "NaN has no number of steps",
    "ReduceMax": "NaN is never larger, or always",
    "ReduceMin": "NaN is never smaller, or always",
    "STFT": "frames are multiplied by 0, or are not read",
    "Softmax": "`Exp(input) / ReduceSum(Exp(input))` of 1 beside an infinity is 0; "
    "onnxruntime subtracts the infinity from itself first",
    "SoftmaxCrossEntropyLoss": "what is ignored is multiplied by 0, or is not read",
    "TopK": "NaN has no place in an order",
    "DFT": "infinities are multiplied by 0 in one order of the sums or another",
    "DeformConv": "infinities outside are multiplied by 0, or are not read",
    "DynamicQuantizeLinear": "the least and largest element skip NaN or do not",
    "GRU": "its activations clip or lose NaN",
    "LogSoftmax": "`Log(Exp(input) / ReduceSum(Exp(input)))` of 1 beside an infinity "
    "is minus infinity; onnxruntime subtracts the infinity from itself first",
    "LSTM": "its activations clip or lose NaN",
    "RNN": "its activations clip or lose NaN",
    "GlobalMaxPool": "the largest element skips NaN",
    "MaxPool": "the largest element skips NaN",
    "LRN": "the sum over channels is a running one, in which infinities stay",
    "Resize": "what is outside of the two neighbours is multiplied by 0, or is not",
    "Upsample": "what is outside of the two neighbours is multiplied by 0, or is not",
}


def explanation(node: NodeProto, operands: Operands) -> str | None:
    """Why onnxruntime is no judge of ``node``; None if it is one."""
    for rule in RULES:
        if rule.operator == node.op_type and rule.matches(node, operands):
            return rule.reason
    return None


def is_not_finite(value: Any) -> bool:
    """Whether a value has NaN or infinite elements."""
    if isinstance(value, list):
        return any(is_not_finite(item) for item in value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return False
    return not bool(np.isfinite(value).all())


def not_finite_explanation(node: NodeProto, operands: Operands) -> str | None:
    """Why onnxruntime is no judge of a node with NaN or infinite operands."""
    if node.op_type not in NOT_FINITE or not any(map(is_not_finite, operands)):
        return None
    return NOT_FINITE[node.op_type]
