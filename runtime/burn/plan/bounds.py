"""Upper bounds for the magnitudes of results, by the bounds of operands."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, prod, sqrt
from typing import Any, Protocol

import numpy as np

from burn.ops import activation
from burn.ops.activation import gelu_grad
from burn.ops.attention import masked_softmax
from burn.ops.conv import conv, conv_transpose
from burn.ops.elementwise import (
    abs as abs_,
    add,
    cast,
    div,
    maximum,
    minimum,
    mul,
    neg,
    sub,
)
from burn.ops.embedding import embedding
from burn.ops.fused import (
    chained,
    conv_then,
    group_norm_then,
    linear_then,
    matmul_then,
    max_pool_with_places,
)
from burn.ops.indexing import getitem, take
from burn.ops.layer_norm import layer_norm
from burn.ops.logic import where
from burn.ops.matmul import linear, matmul
from burn.ops.norm import group_norm
from burn.ops.pool import avg_pool, max_pool
from burn.ops.reduction import max as max_, mean, min as min_, sum as sum_
from burn.ops.rnn import gru, lstm, rnn
from burn.ops.shape import (
    concat,
    expand,
    flatten,
    permute,
    reshape,
    split,
    squeeze,
    transpose,
    unsqueeze,
)
from burn.ops.softmax import softmax
from burn.ops.support import Array
from burn.plan.tree import Step

#: The largest finite number of float32.
LARGEST = float(np.finfo(np.float32).max)
#: The bound of integers.
INTEGERS = float(2**63)
#: Up to here nothing overflows, also where factors are not merged into weights.
MOST = 1e30
#: What gives NaN for NaN and a limit at infinities after a product, as in eager calls.
_EXACT_ENDINGS = frozenset({"add", "scale", "sigmoid", "tanh"})

PRODUCTS = frozenset(
    {conv, conv_then, conv_transpose, linear, linear_then, matmul, matmul_then}
)
#: Activations that are no larger than their operand, by more than ``_ABOVE``.
_ACTIVATIONS = frozenset(
    {activation.celu, activation.elu, activation.gelu, activation.hard_sigmoid}
    | {activation.hard_swish, activation.mish, activation.prelu, activation.selu}
    | {activation.silu, activation.softplus}
)
_ABOVE = 2.0
#: What moves elements of the first operand, or chooses among them, or is between them.
_MOVING = frozenset(
    {abs_, neg, cast, embedding, getitem, take}
    | {avg_pool, max_pool, max_pool_with_places}
    | {max_, min_, mean, concat, expand, flatten, permute, reshape, split}
    | {squeeze, transpose, unsqueeze, activation.relu}
)
_UP_TO_ONE = frozenset({activation.sigmoid, activation.tanh, softmax, masked_softmax})
#: The engine's are looked at for NaN in every run.
SOFTMAX = frozenset({softmax, masked_softmax})
#: Computed by the engine otherwise than by NumPy where there is a NaN or infinity.
_HAZARDS = _ACTIVATIONS | {max_pool, max_pool_with_places, gru, lstm, rnn, gelu_grad}
#: Activations of larger numbers are infinite or 0, or not known.
_MOST_ACTIVATED = 1e18
#: Of more weights the sums are estimated by the largest.
_SUMMED = 1 << 22


class Operands(Protocol):
    """What is known of the arguments of steps."""

    def bound(self, arg: Any) -> float:
        """An upper bound for the magnitudes in an argument, infinite if unknown."""

    def shape(self, arg: Any) -> tuple[int, ...]:
        """The shape of an argument that is a tensor."""

    def constant(self, arg: Any) -> Array | None:
        """The array of an argument that is the same in every run."""


def operands_at_risk(step: Step, *, rounds: bool) -> tuple[int, ...]:
    """The operands that must be finite, with the result, for the engine to be right.

    With ``rounds`` products are sums in another order than in eager calls, or other
    sums: where one overflows the result may be an infinity or NaN.
    """
    primitive = step.primitive
    links = step.static.get("chain", ()) if primitive is chained else ()
    has_relu = any(name == "relu" for name, _ in links)
    if not _has_exact_end(step) or has_relu or primitive in _HAZARDS:
        return tuple(range(len(step.args)))
    return (0, 1, 2)[: len(step.args)] if rounds and primitive in PRODUCTS else ()


def _has_exact_end(step: Step) -> bool:
    """Whether what follows in the same pass is for NaN and infinities as well."""
    return {name for name, *_ in step.static.get("after", ())} <= _EXACT_ENDINGS


def is_safe(step: Step, known: Operands) -> bool:
    """Whether all numbers inside of a step are finite, by the bounds of operands."""
    if step.primitive in PRODUCTS and _has_exact_end(step):
        step = replace(step, static={})  # what is added may be infinite, as a mask
    return magnitude(step, known) <= MOST


def magnitude(step: Step, known: Operands) -> float:
    """A bound for the results of a step, infinite where none is known."""
    primitive = step.primitive
    if primitive in _MOVING:
        return known.bound(step.args[0])
    if primitive in _ACTIVATIONS:
        return _activated(step, known)
    if primitive in _UP_TO_ONE:
        return 1.0 if isfinite(known.bound(step.args[0])) else inf
    rule = _RULES.get(primitive)
    return inf if rule is None else rule(step, known)


def _activated(step: Step, known: Operands) -> float:
    numbers = [abs(v) for v in step.static.values() if isinstance(v, int | float)]
    slopes = [known.bound(arg) for arg in step.args[1:]]
    x = known.bound(step.args[0])
    return (
        inf if x > _MOST_ACTIVATED else _ABOVE * max([1.0, *numbers, *slopes]) * (x + 1)
    )


def _layer(step: Step, known: Operands) -> float:
    """A bound for sums of products with weights, with a bias."""
    x, weight, *bias = step.args[:3]
    rows = 1 if step.primitive is conv_transpose else 0
    shape, array = known.shape(weight), known.constant(weight)
    count = prod(shape) / max(shape[rows], 1)
    if array is not None and array.size <= _SUMMED and not rows:
        sums = np.abs(array.reshape(shape[0], -1)).sum(axis=1, dtype=np.float64)
        total = float(np.max(sums, initial=0.0))
    else:
        total = known.bound(weight) * count
    return _ended(step, known.bound(x) * total + sum(map(known.bound, bias)), known)


def _matrices(step: Step, known: Operands) -> float:
    x, y = step.args[:2]
    count = known.shape(x)[-1]
    return _ended(step, known.bound(x) * known.bound(y) * count, known)


def _ended(step: Step, bound: float, known: Operands) -> float:
    """A bound for a result after what is done in the same pass."""
    for name, *numbers in step.static.get("after", ()):
        if bound > MOST:
            return inf
        if name == "add":
            bound += known.bound(step.args[3])
        elif name == "scale":
            bound *= max(1.0, abs(numbers[0]))
        elif name not in ("clip", "relu"):
            most = max([1.0, *map(abs, numbers)])
            bound = inf if bound > _MOST_ACTIVATED else _ABOVE * most * (bound + 1)
    return bound


def _normalised(step: Step, known: Operands) -> float:
    """Rows are divided by their deviation, the sum of squares being finite."""
    count = float(prod(step.shapes[0]))
    if known.bound(step.args[0]) ** 2 * count > MOST:
        return inf
    weight, bias = (*step.args[1:], None, None)[:2]
    scale = 1.0 if weight is None else known.bound(weight)
    return _ended(step, sqrt(count) * scale + known.bound(bias), known)


def _recurrent(step: Step, known: Operands) -> float:
    """Gates are within 1, and cells grow by 1 in a step."""
    x, w, r, *more = step.args
    steps = step.shapes[0][0]
    given = [b for b in map(known.bound, more[1:]) if b != INTEGERS]  # no lengths
    states = 1.0 + steps + sum(given)
    base = known.bound(x) * known.bound(w) * known.shape(w)[-1]
    base += known.bound(more[0] if more else None)
    growth = known.bound(r) * known.shape(r)[-1]
    if "clip" in step.static or "activations" in step.static:
        if step.primitive is not rnn:
            return inf
        for _ in range(steps):  # of an activation that is no larger than its operand
            states = base + growth * states
            if states > MOST:
                return inf
    return states if base + growth * states <= MOST else inf


def _chained(step: Step, known: Operands) -> float:
    bound = known.bound(step.args[0])
    for name, place in step.static["chain"]:
        other = 0.0 if place is None else known.bound(step.args[1 + place])
        if name in ("add", "sub"):
            bound += other
        elif name == "mul":
            bound *= other
        elif name != "relu":
            return inf  # a quotient, or a root
        if not bound <= MOST:
            return inf
    return bound


def _quotient(step: Step, known: Operands) -> float:
    x, y = step.args
    is_number = type(y) in (int, float) and y != 0
    return known.bound(x) / abs(y) if is_number else inf


def _sum(step: Step, known: Operands) -> float:
    count = prod(known.shape(step.args[0])) / max(prod(step.shapes[0]), 1)
    return known.bound(step.args[0]) * count


def _largest_of_all(step: Step, known: Operands) -> float:
    return max(map(known.bound, step.args))


def _sum_of_all(step: Step, known: Operands) -> float:
    return sum(map(known.bound, step.args))


def _sloped(step: Step, known: Operands) -> float:
    slope = float(step.static.get("alpha", 0.01))
    return known.bound(step.args[0]) * max(1.0, abs(slope))


def _gradient(step: Step, known: Operands) -> float:
    """The derivative of GELU is less than 2."""
    grad, x = map(known.bound, step.args[:2])
    return inf if max(grad, x) > _MOST_ACTIVATED else 2 * grad


_RULES: dict[Any, Callable[[Step, Operands], float]] = {
    **dict.fromkeys((conv, conv_then, conv_transpose, linear, linear_then), _layer),
    **dict.fromkeys((matmul, matmul_then), _matrices),
    **dict.fromkeys((group_norm, group_norm_then, layer_norm), _normalised),
    **dict.fromkeys((gru, lstm, rnn), _recurrent),
    **dict.fromkeys((add, sub), _sum_of_all),
    **dict.fromkeys((activation.clip, maximum, minimum, where), _largest_of_all),
    activation.leaky_relu: _sloped,
    chained: _chained,
    div: _quotient,
    gelu_grad: _gradient,
    mul: lambda step, known: prod(map(known.bound, step.args)),
    sum_: _sum,
}
