"""Axes and extents of which onnxruntime makes something else: conditions of rules."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

Operands = Sequence[Any]


def has_equal_axes(node: NodeProto, operands: Operands) -> bool:
    """Return whether an operand names an axis twice."""
    if len(operands) < 2 or operands[1] is None:
        return False
    axes = np.asarray(operands[1]).ravel() % max(1, operands[0].ndim)
    return len(set(axes.tolist())) < len(axes)


def has_equal_attribute_axes(node: NodeProto, operands: Operands) -> bool:
    """Return whether an attribute names an axis twice."""
    given = [axis for a in node.attribute if a.name == "axes" for axis in a.ints]
    return len({axis % max(1, operands[0].ndim) for axis in given}) < len(given)


def drops_axes(node: NodeProto, operands: Operands) -> bool:
    """Return whether a split has lengths, and an attribute for a split without."""
    keeps = [a.i for a in node.attribute if a.name == "keepdims"]
    return keeps == [0] and len(operands) > 1


def copies_computed_zeros(node: NodeProto, operands: Operands) -> bool:
    """Return whether an empty reshape has a 0 where the operand has another extent."""
    data, shape = operands[:2] if len(operands) > 1 else (operands[0], ())
    keeps = not any(a.name == "allowzero" and a.i for a in node.attribute)
    pairs = zip(data.shape, np.ravel(shape), strict=False)
    return keeps and data.size == 0 and any(n == 0 != extent for extent, n in pairs)
