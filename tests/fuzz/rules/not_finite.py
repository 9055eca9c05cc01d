"""Nodes with NaN or infinite operands for which onnxruntime is no reference.

Each rule says which operands it is about and what they hold. The reason is the formula
of ONNX's documentation or function body that we follow, and what onnxruntime does
instead; where neither says anything, it tells both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto

from tests.fuzz.rules.explained import Operands, Rule

Matches = Callable[[NodeProto, Operands], bool]


def _attribute(node: NodeProto, name: str) -> Any:
    for a in node.attribute:
        if a.name == name:
            value = onnx.helper.get_attribute_value(a)
            return value.decode() if isinstance(value, bytes) else value
    return None


def _some(
    test: Callable[[Any], Any], operands: Operands, places: Sequence[int]
) -> bool:
    chosen = places or range(len(operands))
    arrays = [operands[i] for i in chosen if i < len(operands)]
    return any(
        isinstance(x, np.ndarray) and x.dtype.kind == "f" and bool(np.any(test(x)))
        for x in arrays
    )


def nan(*places: int) -> Matches:
    """NaN in one of the operands at ``places``, or in any."""
    return lambda node, operands: _some(np.isnan, operands, places)


def infinite(*places: int) -> Matches:
    """An infinity in one of the operands at ``places``, or in any."""
    return lambda node, operands: _some(np.isinf, operands, places)


def either(*places: int) -> Matches:
    """NaN or an infinity in one of the operands at ``places``, or in any."""
    return lambda node, operands: _some(lambda x: ~np.isfinite(x), operands, places)


def lowest(*places: int) -> Matches:
    """Minus infinity in one of the operands at ``places``, or in any."""
    return lambda node, operands: _some(np.isneginf, operands, places)


def large(*places: int) -> Matches:
    """A number whose square overflows in one of the operands at ``places``."""
    return lambda node, operands: _some(
        lambda x: np.abs(x) > np.sqrt(np.finfo(x.dtype).max), operands, places
    )


def both(*conditions: Matches) -> Matches:
    """Return whether all of ``conditions`` hold."""
    return lambda node, operands: all(test(node, operands) for test in conditions)


def has(name: str, *values: Any) -> Matches:
    """An attribute that is given, with one of ``values``."""
    return lambda node, operands: _attribute(node, name) in values


def _is_double(node: NodeProto, operands: Operands) -> bool:
    return bool(getattr(operands[0], "dtype", None) == np.float64)


def _pads(node: NodeProto, operands: Operands) -> bool:
    same = _attribute(node, "auto_pad") in ("SAME_UPPER", "SAME_LOWER")
    return same or any(_attribute(node, "pads") or ())


def _has_own_sums(node: NodeProto, operands: Operands) -> bool:
    """Return whether a batch normalization is elementwise, or uses batch statistics."""
    return len(node.output) > 1 or _attribute(node, "spatial") == 0


def _has_no_variance(node: NodeProto, operands: Operands) -> bool:
    """Return whether elements normalized together are equal up to rounding."""
    x = operands[0]
    given = _attribute(node, "axes")
    axes = tuple(axis % x.ndim for axis in given or (0, 2, 3))
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        slack = 4 * float(np.finfo(x.dtype).eps) * (wide**2).mean(axes)
        return bool((wide.var(axes) <= slack).any())


def _depends_on_order(node: NodeProto, operands: Operands) -> bool:
    """Return whether one partial product may be infinite while another is 0.

    An infinity and a 0 among the factors are NaN in every order.
    """
    x = operands[0]
    given = operands[1] if len(operands) > 1 else _attribute(node, "axes")
    axes = None if given is None or not len(given) else tuple(np.ravel(given).tolist())
    limits = np.finfo(x.dtype)
    sizes = np.abs(x.astype(np.float64))
    zero, infinity = (sizes == 0).any(axes), np.isinf(sizes).any(axes)
    digits = np.log2(np.where((sizes > 0) & np.isfinite(sizes), sizes, 1))
    small = np.minimum(digits, 0).sum(axes) < np.log2(float(limits.smallest_subnormal))
    big = np.maximum(digits, 0).sum(axes) >= np.log2(float(limits.max))
    jumps = (infinity | big) & (zero | small) & ~(infinity & zero)
    return bool(jumps.any())


def _sums_to_infinity(node: NodeProto, operands: Operands) -> bool:
    """Return whether the sum of all elements, by the largest of a window, overflows."""
    x = operands[0]
    window = operands[2] if node.op_type == "STFT" and len(operands) > 2 else None
    factor = 1.0 if window is None else float(np.abs(window).max(initial=1.0))
    total = float(np.abs(x.astype(np.float64)).sum()) * factor
    return total > float(np.finfo(x.dtype).max)


def _overflows_in_part(node: NodeProto, operands: Operands) -> bool:
    """Return whether a sum of finite products may overflow, that of all signs apart."""
    x, weight = (operands[i].astype(np.float64) for i in (0, 1))
    if not np.isfinite(weight).all() or not weight.ndim:
        return False
    terms = np.abs(weight).reshape(len(weight), -1).sum(1).max(initial=0.0)
    largest = np.abs(x[np.isfinite(x)]).max(initial=0.0)
    return bool(largest * terms > float(np.finfo(operands[0].dtype).max))


def _is_unbounded(node: NodeProto, operands: Operands) -> bool:
    """Return whether an infinity, of ``x`` or of the other bound, meets no bound."""
    names = {a.name for a in node.attribute}
    given = [
        name in names or (i < len(operands) and operands[i] is not None)
        for i, name in ((1, "min"), (2, "max"))
    ]
    return not all(given) and _some(np.isinf, operands, ())


def _rectifies(node: NodeProto, operands: Operands) -> bool:
    """Return whether an activation of a recurrent node is ``Relu``."""
    names = _attribute(node, "activations") or ()
    return any(name.lower() == b"relu" for name in names)


def _quantizes_infinities(node: NodeProto, operands: Operands) -> bool:
    """Return whether a quantized value may be infinite or NaN by a scale of x or y."""
    is_list = node.op_type == "QLinearConcat"
    places = range(3, len(operands), 3) if is_list else (1,)
    return either(*places)(node, operands) or nan(0 if is_list else 3)(node, operands)


def _hides(node: NodeProto, operands: Operands) -> bool:
    """Return whether attention hides keys: by a mask, by causality, or by lengths."""
    flags = any(_attribute(node, n) for n in ("is_causal", "unidirectional"))
    integral = any(x is not None and x.dtype.kind in "iub" for x in operands)
    return flags or integral or len(operands) > 3 or node.op_type[0] == "G"


ORDER = (
    "no order of NaN is specified; a NaN is the result here, as in NumPy and in the "
    "reference evaluator, and is skipped or not by its place in onnxruntime"
)
LARGEST = "the largest element skips NaN in onnxruntime"
MASK = (
    "what a mask hides is replaced by minus infinity, and a row of that alone is 0; "
    "onnxruntime adds the mask, and a row of minus infinity is NaN"
)
TRANSFORM = (
    "a fast transform leaves out products with 0 and 1, the sum of the definition "
    "does not; which infinities become NaN depends on it"
)
GATES = (
    "`Sigmoid` and `Tanh` of NaN are NaN; onnxruntime's own clamp their argument and "
    "lose it, and R is not multiplied by an initial state that is left out"
)
DYNAMIC = (
    "`Saturate(Round(qmin - min / scale))` is NaN as an integer, which has no value"
)
SCALES = (
    "`(x - zero_point) * scale`; onnxruntime takes `zero_point * scale` out of the "
    "difference, where infinities are subtracted from each other"
)
PLACE = (
    "a place that is not finite is outside, or NaN; onnxruntime makes an integer of it"
)
WEIGHT = (
    "elements beside a point that have the weight 0 are multiplied by it, or not read"
)
ELIMINATION = "infinities cancel by the order of elimination"


def _rules(operators: str, matches: Matches, reason: str) -> list[Rule]:
    return [Rule(operator, matches, reason) for operator in operators.split()]


NOT_FINITE: tuple[Rule, ...] = (
    *_rules("ArgMax ArgMin Hardmax ReduceMax ReduceMin Unique", nan(0), ORDER),
    *_rules("MaxPool GlobalMaxPool MaxRoiPool", nan(0), LARGEST),
    *_rules(
        "MaxPool GlobalMaxPool MaxRoiPool",
        lowest(0),
        "`computing the max on all values of a subset of the input tensor`, of "
        "minus infinities too; onnxruntime begins with the lowest finite number",
    ),
    *_rules(
        "ReduceProd",
        _depends_on_order,
        "`the product of the input tensor's elements`, in no order: what overflows in "
        "one and becomes 0 in another is infinite, 0, or their product NaN",
    ),
    *_rules("MaxRoiPool", either(1), PLACE),
    *_rules("RoiAlign Resize Upsample GridSample DeformConv", either(0), WEIGHT),
    *_rules("GridSample", either(1), PLACE),
    *_rules("DeformConv", nan(2), PLACE),
    *_rules("NonMaxSuppression", nan(0, 1), ORDER),
    *_rules(
        "ScatterElements ScatterND", both(has("reduction", "max", "min"), nan()), ORDER
    ),
    *_rules(
        "Clip",
        _is_unbounded,
        "the function body compares with no bound that is not given; onnxruntime, and "
        "the attributes before version 11, have the largest finite number for it",
    ),
    *_rules(
        "Clip",
        nan(1, 2),
        "`Min(max, Max(input, min))` of NaN is NaN; onnxruntime has no bound then",
    ),
    *_rules(
        "Conv FusedConv",
        both(either(1), _pads),
        "padding is not read; onnxruntime multiplies its zeros by the weights",
    ),
    *_rules(
        "Conv FusedConv",
        _overflows_in_part,
        "the sum of products is in no order: where it is finite, a part of it may be "
        "infinite",
    ),
    *_rules(
        "InstanceNormalization",
        large(1),
        "`scale * (x - mean) / sqrt(variance + epsilon) + B`; onnxruntime subtracts "
        "`mean * scale` from `x * scale`, both infinite, also where their difference "
        "is not",
    ),
    *_rules(
        "InstanceNormalization",
        large(0),
        "`(x - mean) / sqrt(variance + epsilon)` is 0 if the variance overflows; it is "
        "NaN in onnxruntime",
    ),
    *_rules(
        "ReduceLogSumExp",
        both(infinite(0), nan(0)),
        "`Log(ReduceSum(Exp(data)))` of NaN is NaN; onnxruntime skips NaN for the "
        "largest element, and gives an infinite one as it is",
    ),
    *_rules(
        "MeanVarianceNormalization",
        _has_no_variance,
        "`Sqrt(E_Xsquared - E_X_squared)` is of what rounding leaves of 0 where "
        "elements are equal, and NaN if that is negative",
    ),
    *_rules(
        "BatchNormalization",
        both(infinite(1), _has_own_sums),
        "`(X - mean) / sqrt(var + epsilon) * scale + B`; onnxruntime subtracts "
        "`mean * scale` from `X * scale`, both infinite",
    ),
    *_rules(
        "LayerNormalization",
        both(infinite(0), lambda node, _: len(node.output) > 1),
        "`Mean = ReduceMean(X)` is infinite; onnxruntime subtracts infinities for it",
    ),
    *_rules(
        "LogSoftmax SoftmaxCrossEntropyLoss",
        both(either(0), _is_double),
        "`Sub(X, ReduceMax(X))` is NaN in the function body, and in onnxruntime's "
        "float32; its float64 skips NaN, and is minus infinity beside infinity",
    ),
    *_rules(
        "LRN",
        either(0),
        "`square_sum` is of the channels around; onnxruntime adds the next to a "
        "running sum and subtracts the last, so that infinities stay",
    ),
    *_rules(
        "Attention MultiHeadAttention GroupQueryAttention QAttention", infinite(), MASK
    ),
    *_rules(
        "Attention MultiHeadAttention GroupQueryAttention", both(nan(), _hides), MASK
    ),
    *_rules("DFT STFT", either(), TRANSFORM),
    *_rules("DFT STFT", _sums_to_infinity, TRANSFORM),
    *_rules(
        "Einsum",
        infinite(),
        "terms are summed before or after a product with what they have in common",
    ),
    *_rules("Det", infinite(0), ELIMINATION),
    *_rules("Inverse", either(0), ELIMINATION),
    *_rules("GRU LSTM DynamicQuantizeLSTM", either(), GATES),
    *_rules("RNN", either(2), GATES),
    *_rules(
        "RNN",
        both(_rectifies, either()),
        "`Relu(x) - max(0, x)`, which is NaN of NaN as that of the operator `Relu`; "
        "onnxruntime's own function is 0 of NaN here alone",
    ),
    *_rules("DynamicQuantizeLinear DynamicQuantizeMatMul", either(0), DYNAMIC),
    *_rules(
        "QLinearAveragePool QLinearConcat QLinearGlobalAveragePool",
        _quantizes_infinities,
        "`saturate((x / y_scale) + y_zero_point)` of infinity is the largest integer, "
        "and NaN has none: 0 or both signs times an infinite scale, or that by itself; "
        "onnxruntime makes an integer of both first, and copies what has `y_scale`",
    ),
    *_rules("QLinearAdd QLinearMul QLinearSoftmax", either(1, 3, 4), SCALES),
    *_rules(
        "SVMClassifier",
        infinite(0),
        "kernels of infinities are infinite or NaN, and so are the votes they make",
    ),
    *_rules(
        "Normalizer",
        either(0),
        "a norm of NaN and a quotient of infinities are NaN; onnxruntime skips both",
    ),
)


def is_not_finite(value: Any) -> bool:
    """Return whether a value has NaN or infinite elements."""
    if isinstance(value, list):
        return any(is_not_finite(item) for item in value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return False
    return not bool(np.isfinite(value).all())


def not_finite_explanation(node: NodeProto, operands: Operands) -> str | None:
    """Return why onnxruntime is no reference for NaN or infinite operands.

    What the operands of nodes in a body hold is not known: a rule for one of their
    operators is enough.
    """
    for rule in NOT_FINITE:
        if rule.operator == node.op_type and rule.matches(node, operands):
            return rule.reason
    inner = {name for a in node.attribute for name in _inner_operators(a.g)}
    return next((rule.reason for rule in NOT_FINITE if rule.operator in inner), None)


def _inner_operators(body: onnx.GraphProto) -> Iterator[str]:
    """The operators in a body and in the bodies of its nodes."""
    for node in body.node:
        yield node.op_type
        for attribute in node.attribute:
            yield from _inner_operators(attribute.g)
