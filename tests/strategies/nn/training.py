"""Examples of steps of optimizers."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, extents, floats

DOMAIN = "ai.onnx.preview.training"


def groups(
    draw: Draw, attrs: dict[str, Any], signed: int, squares: int, results: int
) -> Example:
    """One or two tensors with ``signed`` others and ``squares`` that are positive."""
    number = draw(st.integers(1, 2))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    shapes = [extents(draw) for _ in range(number)]
    operands: list[Array] = [
        np.array(0.3, np.float32 if draw(st.booleans()) else dtype),
        np.array(draw(st.integers(0, 5)), np.int64),
    ]
    for _ in range(1 + signed):
        operands += [floats(draw, shape, dtype) for shape in shapes]
    for _ in range(squares):
        operands += [floats(draw, shape, dtype) ** 2 + dtype(0.1) for shape in shapes]
    outputs = results * number
    expected = expectation(attrs, operands, number, signed, squares)
    return Example(attrs, operands, outputs, expected=expected, rtol=1e-4, atol=1e-5)


def expectation(
    attrs: dict[str, Any], operands: list[Array], number: int, signed: int, squares: int
) -> list[Array]:
    """The results by the pseudo code of the specification."""
    rate, count, *tensors = (np.asarray(x, np.float64) for x in operands)
    rule = (adam if signed == 2 else adagrad) if squares else momentum
    results = [rule(attrs, rate, count, *tensors[i::number]) for i in range(number)]
    dtype = operands[2].dtype
    return [y.astype(dtype) for kind in zip(*results, strict=True) for y in kind]


def adagrad(attrs: Any, rate: Any, count: Any, x: Any, g: Any, h: Any) -> Any:
    g = attrs.get("norm_coefficient", 0.0) * x + g
    h = h + g * g
    rate = rate / (1 + count * attrs.get("decay_factor", 0.0))
    return x - rate * g / (np.sqrt(h) + attrs.get("epsilon", 1e-6)), h


def adam(attrs: Any, rate: Any, count: Any, x: Any, g: Any, v: Any, h: Any) -> Any:
    alpha, beta = attrs.get("alpha", 0.9), attrs.get("beta", 0.999)
    g = attrs.get("norm_coefficient", 0.0) * x + g
    v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
    if count > 0:
        rate = rate * np.sqrt(1 - beta**count) / (1 - alpha**count)
    x = x - rate * v / (np.sqrt(h) + attrs.get("epsilon", 1e-6))
    return (1 - attrs.get("norm_coefficient_post", 0.0)) * x, v, h


def momentum(attrs: Any, rate: Any, count: Any, x: Any, g: Any, v: Any) -> Any:
    g = attrs["norm_coefficient"] * x + g
    v = attrs["alpha"] * v + (attrs["beta"] if count > 0 else 1.0) * g
    step = g + attrs["alpha"] * v if attrs["mode"] == "nesterov" else v
    return x - rate * step, v


def some(draw: Draw, **values: float) -> dict[str, Any]:
    """Some of the attributes."""
    return {name: value for name, value in values.items() if draw(st.booleans())}


@case("Adagrad", domain=DOMAIN)
def adagrad_step(draw: Draw, version: int) -> Example:
    attrs = some(draw, decay_factor=0.1, epsilon=0.01, norm_coefficient=0.2)
    return groups(draw, attrs, 1, 1, 2)


@case("Adam", domain=DOMAIN)
def adam_step(draw: Draw, version: int) -> Example:
    attrs = some(
        draw,
        alpha=0.8,
        beta=0.95,
        epsilon=0.01,
        norm_coefficient=0.2,
        norm_coefficient_post=0.1,
    )
    return groups(draw, attrs, 2, 1, 3)


@case("Momentum", domain=DOMAIN)
def momentum_step(draw: Draw, version: int) -> Example:
    mode = draw(st.sampled_from(["standard", "nesterov"]))
    penalty = draw(st.sampled_from([0.0, 0.2]))
    attrs = {"alpha": 0.9, "beta": 0.7, "mode": mode, "norm_coefficient": penalty}
    return groups(draw, attrs, 2, 0, 2)
