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


RULES = (
    Rule(
        "Compress",
        lambda node, operands: operands[1].ndim != 1,
        "`condition`: `Rank 1 tensor of booleans`; onnxruntime reads any rank",
    ),
    Rule(
        "Squeeze",
        _has_equal_axes,
        "an axis that is named twice has no meaning; onnxruntime removes it once",
    ),
)

#: Operators that onnxruntime computes otherwise from NaN or infinite operands.
NOT_FINITE = {
    "DynamicQuantizeLinear": "the least and largest element skip NaN or do not",
    "GRU": "its activations clip or lose NaN",
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
