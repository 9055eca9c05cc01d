"""Nodes that are not valid ONNX, but that onnxruntime runs.

It reads out of bounds, or gives them a meaning that the specification has not. Each row
names operators, a condition on a node and the contents of its operands, and the
sentence of the specification that the node breaks.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, helper

Operands = Sequence[Any]
Condition = Callable[[NodeProto, Operands], bool]

REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min")
    + ("Prod", "Sum", "SumSquare")
)


def _attribute(node: NodeProto, name: str, default: Any) -> Any:
    for attribute in node.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    return default


def _operand(operands: Operands, place: int) -> Any:
    return operands[place] if place < len(operands) else None


def _is_outside(axes: Any, rank: int) -> bool:
    return any(not -rank <= int(axis) < rank for axis in np.ravel(axes))


def _has_axis_outside(node: NodeProto, operands: Operands) -> bool:
    return _is_outside(_attribute(node, "axis", 0), operands[0].ndim)


def _has_axes_outside(node: NodeProto, operands: Operands) -> bool:
    default = [0, 2, 3] if node.op_type == "MeanVarianceNormalization" else []
    axes = _operand(operands, 1)
    given = _attribute(node, "axes", default) if axes is None else axes
    return _is_outside(given, operands[0].ndim)


def _sums_axis_outside(node: NodeProto, operands: Operands) -> bool:
    return _is_outside(operands[1], operands[0].ndim)


def _pads_axes_twice(node: NodeProto, operands: Operands) -> bool:
    axes = _operand(operands, 3)
    if axes is None:
        return False
    given = np.ravel(axes) % max(1, operands[0].ndim)
    return len(set(given.tolist())) < len(given)


def _has_other_batches(node: NodeProto, operands: Operands) -> bool:
    count = _attribute(node, "batch_dims", 0)
    data, indices = operands[:2]
    return bool(data.shape[:count] != indices.shape[:count])


def _gathers_outside(node: NodeProto, operands: Operands) -> bool:
    data, indices = operands[:2]
    first = _attribute(node, "batch_dims", 0)
    count = indices.shape[-1] if indices.ndim else 0
    extents = np.array(data.shape[first : first + count])
    if not indices.ndim or len(extents) != count:
        return True
    return bool(((indices < -extents) | (indices >= extents)).any())


def _has_odd_weights(node: NodeProto, operands: Operands) -> bool:
    weights = _operand(operands, 2)
    return weights is not None and bool(weights.shape != operands[0].shape[1:2])


def _has_other_targets(node: NodeProto, operands: Operands) -> bool:
    x, target = operands[:2]
    return bool(target.shape != x.shape[:1] + x.shape[2:])


def _imputes_odd_count(node: NodeProto, operands: Operands) -> bool:
    floats = _attribute(node, "imputed_value_floats", [])
    count = len(floats or _attribute(node, "imputed_value_int64s", []))
    x = operands[0]
    return count > 1 and (x.ndim not in (1, 2) or count != x.shape[-1])


def _has_odd_scales(node: NodeProto, operands: Operands) -> bool:
    x, *vectors = operands[:3]
    is_one = x.ndim > 1 and x.shape[1] > 1 and 1 in [v.size for v in vectors]
    return is_one or any(v.ndim != 1 for v in vectors)


def _has_odd_frames(node: NodeProto, operands: Operands) -> bool:
    window = _operand(operands, 2)
    if window is not None and window.ndim != 1:
        return True
    real = operands[0].ndim < 3 or operands[0].shape[-1] == 1
    return bool(_attribute(node, "onesided", 1)) and not real


def _halves_complex_signal(node: NodeProto, operands: Operands) -> bool:
    if not _attribute(node, "onesided", 0) or _attribute(node, "inverse", 0):
        return False
    return bool(operands[0].ndim > 1 and operands[0].shape[-1] == 2)


def _has_odd_coefficients(node: NodeProto, operands: Operands) -> bool:
    x = operands[0]
    width = x.shape[-1] if x.ndim else 1
    count = len(_attribute(node, "coefficients", []))
    return x.ndim not in (1, 2) or count != width * _attribute(node, "targets", 1)


def _classifies_other_features(node: NodeProto, operands: Operands) -> bool:
    x = operands[0]
    width = x.shape[-1] if x.ndim else 1
    rows = len(_attribute(node, "intercepts", []))
    count = len(_attribute(node, "coefficients", []))
    return x.ndim not in (1, 2) or (rows > 0 and count != width * rows)


def _has_no_matrix(node: NodeProto, operands: Operands) -> bool:
    return any(x.ndim not in (1, 2) for x in operands)


def _has_larger_slope(node: NodeProto, operands: Operands) -> bool:
    x, slope = operands
    try:
        return bool(np.broadcast_shapes(x.shape, slope.shape) != x.shape)
    except ValueError:
        return True


def _has_several_scales(node: NodeProto, operands: Operands) -> bool:
    given = [x for x in operands[1:] if x is not None]
    return any(x.ndim > 1 or x.size != 1 for x in given)


def _has_other_output_dtype(node: NodeProto, operands: Operands) -> bool:
    asked = _attribute(node, "output_dtype", 0)
    zero_point = _operand(operands, 2)
    if not asked or zero_point is None:
        return False
    return bool(helper.np_dtype_to_tensor_dtype(zero_point.dtype) != asked)


def _has_no_windows(node: NodeProto, operands: Operands) -> bool:
    kernel = _attribute(node, "kernel_shape", [])
    is_last = _attribute(node, "channels_last", 0)
    spatial = operands[0].shape[1:-1] if is_last else operands[0].shape[2:]
    automatic = _attribute(node, "auto_pad", b"NOTSET")
    if automatic in (b"SAME_UPPER", b"SAME_LOWER"):
        return 0 in spatial
    size = len(kernel)
    pads = _attribute(node, "pads", [0] * 2 * size)
    if automatic == b"VALID":
        pads = [0] * 2 * size
    strides = _attribute(node, "strides", [1] * size)
    dilations = _attribute(node, "dilations", [1] * size)
    for axis, extent in enumerate(spatial[:size]):
        span = dilations[axis] * (kernel[axis] - 1) + 1
        room = extent + pads[axis] + pads[axis + size] - span
        if _attribute(node, "ceil_mode", 0):
            room = -(-room // strides[axis]) * strides[axis]
        if room < 0:
            return True
    return False


def _pads_other_axes(node: NodeProto, operands: Operands) -> bool:
    pads = _attribute(node, "pads", [])
    return len(pads) > 0 and len(pads) != 2 * (operands[0].ndim - 2)


def _has_other_residual(node: NodeProto, operands: Operands) -> bool:
    x, skip = operands[:2]
    return skip.shape not in (x.shape, (1, *x.shape[1:]), x.shape[1:])


def _scales_to_another_shape(node: NodeProto, operands: Operands) -> bool:
    """Return whether a scale has more elements along an axis than the product."""
    x, y = operands[:2]
    factors = operands[2:4] if node.op_type == "MatMulIntegerToFloat" else operands[2:3]
    try:
        shape = np.matmul(np.empty(x.shape, bool), np.empty(y.shape, bool)).shape
        return any(np.broadcast_shapes(shape, f.shape) != shape for f in factors)
    except ValueError:
        return True


def _is_not_square(node: NodeProto, operands: Operands) -> bool:
    shape = operands[0].shape
    return len(shape) < 2 or shape[-1] != shape[-2]


#: Operators, the condition, and what the specification says.
INVALID: tuple[tuple[tuple[str, ...], Condition, str], ...] = (
    (("ArgMax", "ArgMin"), _has_axis_outside, "`axis`: `range is [-r, r-1]`"),
    (
        (*REDUCTIONS, "MeanVarianceNormalization"),
        _has_axes_outside,
        "`axes`: `Accepted range is [-r, r-1] where r = rank(data)`",
    ),
    (("CumSum",), _sums_axis_outside, "`Must be in the range [-rank(x), rank(x)-1]`"),
    (
        ("Pad",),
        _pads_axes_twice,
        "`axes`: `Behavior is undefined if an axis is repeated`",
    ),
    (
        ("GatherND",),
        _has_other_batches,
        "`The first b dimensions of the shape of indices tensor and data tensor must "
        "be equal`; onnxruntime reads past the end",
    ),
    (
        ("GatherND",),
        _gathers_outside,
        "`indices`: `All values are expected to be within bounds [-s, s-1]`; "
        "onnxruntime does not look at those of an axis without elements",
    ),
    (
        ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
        _has_odd_weights,
        "`weight`: `it has to be a 1D Tensor assigning weight to each of the classes`; "
        "onnxruntime reads past the end, or ignores what is too long",
    ),
    (
        ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
        _has_other_targets,
        "`target`, `labels`: `shape of (N), where N is batch size, or (N, d1, d2, ..., "
        "dk)`; onnxruntime reads past the end, or ignores what is too long",
    ),
    (
        ("Imputer",),
        _imputes_odd_count,
        "`if the input tensor has the shape [*,F], then the length of the attribute "
        "array may be 1 or F`; onnxruntime takes the first, and axis 1 for F",
    ),
    (
        ("GroupNormalization",),
        _has_odd_scales,
        "`scale`: `Scale tensor of shape (C)`; onnxruntime broadcasts",
    ),
    (
        ("STFT",),
        _has_odd_frames,
        "`An optional 1-D tensor representing the window function`; `if the input or "
        "window tensors are complex, then onesided output is not possible`",
    ),
    (
        ("DFT",),
        _halves_complex_signal,
        "`When onesided=1 and inverse=0 (forward DFT), only real input is supported`; "
        "onnxruntime refuses another one where it knows the shape",
    ),
    (
        ("LinearRegressor",),
        _has_odd_coefficients,
        "a weight for each feature of each target; onnxruntime reads past the end, or "
        "ignores what is too long",
    ),
    (
        ("LinearClassifier",),
        _classifies_other_features,
        "a weight for each feature of each class; onnxruntime reads past the end, or "
        "ignores what is too long",
    ),
    (
        ("FeatureVectorizer",),
        _has_no_matrix,
        "`All input shapes are 2-D`, `1-D tensors are treated as [1,C]`",
    ),
    (
        ("PRelu",),
        _has_larger_slope,
        "`slope`: `its shape must be unidirectional broadcastable to X`",
    ),
    (
        ("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"),
        _has_several_scales,
        "`scale`: `It must be a scalar`; onnxruntime reads the first",
    ),
    (
        ("QuantizeLinear",),
        _has_other_output_dtype,
        "`If both output_dtype and y_zero_point are specified, output_dtype must be "
        "T2`",
    ),
    (
        ("AveragePool", "LpPool", "MaxPool", "QLinearAveragePool"),
        _has_no_windows,
        "a window that does not fit the padded axis; onnxruntime gives no elements",
    ),
    (
        ("Conv", "ConvInteger", "ConvTranspose", "FusedConv", "QLinearConv"),
        _pads_other_axes,
        "`pads format should be as follow [x1_begin, x2_begin...x1_end, x2_end,...]`, "
        "for the spatial axes; onnxruntime takes the first ones of a longer list",
    ),
    (
        ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
        _has_other_residual,
        "`skip`: `shape (batch_size, sequence_length, hidden_size) or (1, "
        "sequence_length, hidden_size) or (sequence_length, hidden_size)`; onnxruntime "
        "counts through another batch",
    ),
    (
        ("DynamicQuantizeMatMul", "MatMulIntegerToFloat"),
        _scales_to_another_shape,
        "`b_scale`: `It could be a scalar or a 1-D tensor, which means a per-tensor or "
        "per-column quantization`; onnxruntime multiplies by as many elements as the "
        "product has",
    ),
    (
        ("Inverse",),
        _is_not_square,
        "`Every matrix in the batch must be invertible`; onnxruntime inverts a part",
    ),
)
