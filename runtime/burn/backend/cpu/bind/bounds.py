"""Selection of steps that oneDNN computes correctly, from declared bounds."""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from burn.ops import activation
from burn.ops.activation import gelu_grad
from burn.ops.attention import masked_softmax
from burn.ops.bounds import MOST, plain_recurrent, recurrent
from burn.ops.conv import conv, conv_transpose
from burn.ops.fused import (
    chained,
    conv_then,
    expanded_depthwise,
    linear_then,
    matmul_then,
    max_pool_with_places,
)
from burn.ops.fused_attention import scaled_attention
from burn.ops.matmul import linear, matmul
from burn.ops.pool import max_pool
from burn.ops.softmax import softmax
from burn.plan.plan_ir import Step
from burn.structs import replace

if TYPE_CHECKING:
    from burn.ops.bounds import Operands

#: The largest finite number of float32.
LARGEST = float(np.finfo(np.float32).max)
#: Epilogues that are NaN for NaN, and have a limit at infinities, as in eager calls.
_EXACT_ENDINGS = frozenset({"add", "scale", "sigmoid", "tanh"})

PRODUCTS = frozenset(
    {conv, conv_then, conv_transpose, linear, linear_then, matmul, matmul_then}
    | {scaled_attention}
)
#: Activations that the engine computes by formulas of its own.
_ACTIVATIONS = frozenset(
    {activation.celu, activation.elu, activation.gelu, activation.hard_sigmoid}
    | {activation.hard_swish, activation.mish, activation.prelu, activation.selu}
    | {activation.silu, activation.softplus}
)
#: The engine's are looked at for NaN in every run.
SOFTMAX = frozenset({softmax, masked_softmax})
#: Computed by the engine otherwise than by NumPy where there is a NaN or infinity.
_HAZARDS = _ACTIVATIONS | {
    *(max_pool, max_pool_with_places, gelu_grad, expanded_depthwise)
}
#: The bounds of recurrent layers, which are hazards too.
_RECURRENT = (recurrent, plain_recurrent)


def operands_at_risk(step: Step, *, rounds: bool) -> tuple[int, ...]:
    """Return the operands that must be finite, like the result, for oneDNN to be right.

    With ``rounds`` sums are reordered or reformulated compared to eager calls: if one
    overflows, the result may be an infinity or NaN.
    """
    primitive = step.primitive
    links = step.static.get("chain", ()) if primitive is chained else ()
    has_relu = any(name == "relu" for name, _ in links)
    is_hazard = primitive in _HAZARDS or primitive.bound in _RECURRENT
    if not _has_exact_end(step) or has_relu or is_hazard:
        return tuple(range(len(step.args)))
    return (0, 1, 2)[: len(step.args)] if rounds and primitive in PRODUCTS else ()


def _has_exact_end(step: Step) -> bool:
    """Return whether the epilogue is correct for NaN and infinities too."""
    return {name for name, *_ in step.static.get("after", ())} <= _EXACT_ENDINGS


def is_safe(step: Step, operands: Operands) -> bool:
    """Return whether bounds prove that all intermediate values of a step are finite."""
    if step.primitive in PRODUCTS and _has_exact_end(step):
        # Without the epilogue, since an addend may be infinite, as in a mask.
        step = replace(step, static={**step.static, "after": ()})
    return magnitude(step, operands) <= MOST


def magnitude(step: Step, operands: Operands) -> float:
    """Return a bound of the results of a step, infinity if unknown."""
    rule = step.primitive.bound
    bound = inf if rule is None else rule(step, operands)
    return inf if isnan(bound) else bound  # zero times an unknown bound
