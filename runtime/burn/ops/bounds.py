"""Upper bounds of the magnitudes of results (interval analysis).

A primitive declares one of these rules as its ``bound``. A rule receives a call (its
``args``, ``static`` values and the ``shapes`` of its results) and the known properties
of operands, and returns infinity if no bound is known.
"""

from __future__ import annotations

from math import inf, isfinite, prod, sqrt
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from burn.ops.support import Array

#: The bound of integers.
INTEGERS = float(2**63)
#: Up to here nothing overflows, also where factors are not merged into weights.
MOST = 1e30
#: The maximum ratio of the magnitudes of an activation and its operand.
_ABOVE = 2.0
#: Activations of larger numbers are infinite or 0, or not known.
_MOST_ACTIVATED = 1e18
#: Of more weights the sums are estimated by the largest.
_SUMMED = 1 << 22


if TYPE_CHECKING:  # protocols take time to create

    class PrimitiveCall(Protocol):
        """A call of a primitive, with the shapes of its results."""

        @property
        def args(self) -> tuple[Any, ...]: ...
        @property
        def static(self) -> dict[str, Any]: ...
        @property
        def shapes(self) -> tuple[tuple[int, ...], ...]: ...

    class Operands(Protocol):
        """Known properties of the arguments of steps."""

        def bound(self, arg: Any) -> float:
            """Return an upper bound of its magnitudes, infinity if unknown."""

        def shape(self, arg: Any) -> tuple[int, ...]:
            """Return the shape of an argument that is a tensor."""

        def constant(self, arg: Any) -> Array | None:
            """Return the array of an argument that is the same in every run."""

        def row_sum(self, arg: Any) -> float | None:
            """Return the largest row sum of a constant matrix, of magnitudes."""


def of_first(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of primitives that move, select or average ``args[0]``."""
    return operands.bound(call.args[0])


def up_to_one(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of results between -1 and 1."""
    return 1.0 if isfinite(operands.bound(call.args[0])) else inf


def product(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of the product of all operands."""
    return prod(map(operands.bound, call.args))


def activated(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of activations that exceed their operand by a small factor."""
    numbers = [abs(v) for v in call.static.values() if isinstance(v, int | float)]
    slopes = [operands.bound(arg) for arg in call.args[1:]]
    x = operands.bound(call.args[0])
    return (
        inf if x > _MOST_ACTIVATED else _ABOVE * max([1.0, *numbers, *slopes]) * (x + 1)
    )


def layer(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of layers with weights [out, ...] and a bias."""
    return _layer(call, operands, 0)


def transposed_layer(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of layers with weights [in, out, ...] and a bias."""
    return _layer(call, operands, 1)


def expanded_layer(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of a layer of the result of another, with two epilogues."""
    x, *layers = call.args
    bound = operands.bound(x)
    for parts, name in ((layers[:2], "after"), (layers[2:], "depth_after")):
        bound = bound * _row_sum(parts[0], operands) + operands.bound(parts[1])
        bound = _after(call.static[name], bound, operands, None)
    return bound


def _layer(call: PrimitiveCall, operands: Operands, rows: int) -> float:
    x, weight, *bias = call.args[:3]
    total = _row_sum(weight, operands, rows)
    return _ended(
        call, operands.bound(x) * total + sum(map(operands.bound, bias)), operands
    )


def _row_sum(weight: Any, operands: Operands, rows: int = 0) -> float:
    """Return a bound of the sums of magnitudes of the weights of each output."""
    shape = operands.shape(weight)
    total = None
    if prod(shape) <= _SUMMED and not rows:
        total = operands.row_sum(weight)
    if total is None:
        total = operands.bound(weight) * (prod(shape) / max(shape[rows], 1))
    return total


def matrices(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of matrix products with an epilogue."""
    x, y = call.args[:2]
    count = operands.shape(x)[-1]
    return _ended(call, operands.bound(x) * operands.bound(y) * count, operands)


def attended(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of averages of values, whose weights follow from products."""
    query, key, value = call.args[:3]
    count = operands.shape(query)[-1] * max(abs(call.static["scale"]), 1.0)
    scores = operands.bound(query) * operands.bound(key) * count
    return operands.bound(value) if scores <= MOST else inf


def _ended(call: PrimitiveCall, bound: float, operands: Operands) -> float:
    """Return the bound of a result after its epilogue."""
    addend = call.args[3] if len(call.args) > 3 else None
    return _after(call.static.get("after", ()), bound, operands, addend)


def _after(after: Any, bound: float, operands: Operands, addend: Any) -> float:
    """Return the bound of a result with ``bound`` after an epilogue."""
    for name, *numbers in after:
        if bound > MOST:
            return inf
        if name == "add":
            bound += operands.bound(addend)
        elif name == "scale":
            bound *= max(1.0, abs(numbers[0]))
        elif name not in ("clip", "relu"):
            most = max([1.0, *map(abs, numbers)])
            bound = inf if bound > _MOST_ACTIVATED else _ABOVE * most * (bound + 1)
    return bound


def normalized(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of normalized rows, whose sum of squares is finite."""
    count = float(prod(call.shapes[0]))
    if operands.bound(call.args[0]) ** 2 * count > MOST:
        return inf
    weight, bias = (*call.args[1:], None, None)[:2]
    scale = 1.0 if weight is None else operands.bound(weight)
    return _ended(call, sqrt(count) * scale + operands.bound(bias), operands)


def shifted(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of a scale and shift per channel by constant statistics."""
    x, mean, var, weight, bias = (*call.args, None, None)[:5]
    variances = operands.constant(var)
    least = 0.0 if variances is None else float(np.min(variances, initial=np.inf))
    if not least + call.static.get("epsilon", 1e-5) > 0 or variances is None:
        return inf
    scale = 1.0 if weight is None else operands.bound(weight)
    scale /= sqrt(least + call.static.get("epsilon", 1e-5))
    total = (operands.bound(x) + operands.bound(mean)) * scale + operands.bound(bias)
    return _ended(call, total, operands)


def recurrent(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of gated recurrent layers: cells grow by at most 1 per step."""
    if "clip" in call.static or "activations" in call.static:
        return inf
    states, base, growth = _states(call, operands)
    return states if base + growth * states <= MOST else inf


def plain_recurrent(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of recurrent layers whose activation is at most its operand."""
    states, base, growth = _states(call, operands)
    if "clip" in call.static or "activations" in call.static:
        for _ in range(call.shapes[0][0]):
            states = base + growth * states
            if states > MOST:
                return inf
    return states if base + growth * states <= MOST else inf


def _states(call: PrimitiveCall, operands: Operands) -> tuple[float, float, float]:
    """Return bounds of states, of the addend of a step, and of the growth in a step."""
    x, w, r, *more = call.args
    given = [part for part in more[1:] if len(operands.shape(part)) != 1]  # no lengths
    states = 1.0 + call.shapes[0][0] + sum(map(operands.bound, given))
    base = operands.bound(x) * operands.bound(w) * operands.shape(w)[-1]
    base += operands.bound(more[0] if more else None)
    return states, base, operands.bound(r) * operands.shape(r)[-1]


def chained(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of chains of elementwise operations."""
    bound = operands.bound(call.args[0])
    for name, index in call.static["chain"]:
        other = 0.0 if index is None else operands.bound(call.args[1 + index])
        if name in ("add", "sub"):
            bound += other
        elif name == "mul":
            bound *= other
        elif name != "relu":
            return inf  # a quotient, or a root
        if not bound <= MOST:
            return inf
    return bound


def quotient(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of a quotient by a number."""
    x, y = call.args
    is_number = type(y) in (int, float) and y != 0
    return operands.bound(x) / abs(y) if is_number else inf


def total(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of sums of elements."""
    count = prod(operands.shape(call.args[0])) / max(prod(call.shapes[0]), 1)
    return operands.bound(call.args[0]) * count


def largest_of_all(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of a selection from the operands."""
    return max(map(operands.bound, call.args))


def sum_of_all(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of sums and differences of operands."""
    return sum(map(operands.bound, call.args))


def sloped(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of a leaky activation with a slope for negative operands."""
    slope = float(call.static.get("alpha", 0.01))
    return operands.bound(call.args[0]) * max(1.0, abs(slope))


def gelu_derivative(call: PrimitiveCall, operands: Operands) -> float:
    """Return the bound of the gradient of GELU, whose derivative is less than 2."""
    grad, x = map(operands.bound, call.args[:2])
    return inf if max(grad, x) > _MOST_ACTIVATED else 2 * grad
