"""Layers of flattened images: their weights take what comes before them."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.fusion.test_fusion import left


def box(*shape: int, seed: int) -> burn.Parameter:
    return burn.Parameter(burn.from_numpy(normal(*shape, seed=seed)))


KERNEL = box(6, 3, 3, 3, seed=1)
WEIGHT, BIAS = box(4, 6 * 4 * 5, seed=2), box(4, seed=3)
MEAN, SCALE, SHIFT = (box(6, seed=seed) for seed in (4, 5, 6))
VAR = burn.Parameter(burn.from_numpy(np.abs(normal(6, seed=7)) + 0.5))


def conv(x: Any) -> Any:
    return ops.conv(x, KERNEL, padding=1)


def norm(x: Any) -> Any:
    return ops.batch_norm(x, MEAN, VAR, SCALE, SHIFT, epsilon=1e-3)


def layer(x: Any, bias: Any = BIAS) -> Any:
    return ops.linear(ops.flatten(x, 1), WEIGHT, bias)


def several(y: Any) -> list[Any]:
    return [layer(norm(y)), y]


TURNED = ["reshape", "permute", "reshape"]  # of weights, once
VIEWED = ["permute", "reshape"]
#: Functions with the names of the primitives that are left of them.
CASES: dict[str, tuple[Any, list[str]]] = {
    "image": (lambda x: layer(conv(x)), ["conv", *TURNED, *VIEWED, "linear"]),
    "without bias": (
        lambda x: layer(conv(x), None),
        ["conv", *TURNED, *VIEWED, "linear"],
    ),
    "activation": (
        lambda x: ops.relu(layer(ops.relu(conv(x)))),
        ["conv_then", *TURNED, *VIEWED, "linear_then"],
    ),
    "reshape": (
        lambda x: ops.linear(ops.reshape(conv(x), (-1, 120)), WEIGHT),
        ["conv", *TURNED, *VIEWED, "linear"],
    ),
    "norm": (
        lambda x: layer(norm(ops.relu(conv(x)))),
        ["scaled_columns", "shifted_by_columns", "conv_then"]
        + [*TURNED, *VIEWED, "linear"],
    ),
    "norm without bias": (
        lambda x: layer(norm(ops.relu(conv(x))), None),
        ["scaled_columns", "shifted_by_columns", "conv_then"]
        + [*TURNED, *VIEWED, "linear"],
    ),
    "norm of anything": (
        lambda x: layer(norm(ops.tanh(ops.concat([x, x], 1)))),
        ["concat", "tanh", "scaled_columns", "shifted_by_columns", "flatten", "linear"],
    ),
    "no image": (
        lambda x: layer(ops.tanh(ops.concat([x, x], 1))),
        ["concat", "tanh", "flatten", "linear"],
    ),
    "rows of channels": (
        lambda x: ops.linear(
            ops.reshape(conv(x), (-1, 20)), ops.reshape(WEIGHT, (24, 20))
        ),
        ["reshape", "conv", "reshape", "linear"],
    ),
    "used twice": (
        lambda x: [y := ops.flatten(conv(x), 1), ops.linear(y, WEIGHT)],
        ["conv", "flatten", "linear"],
    ),
    "norm that is used twice": (
        lambda x: [y := norm(ops.relu(conv(x))), layer(y)],
        ["conv_then", "batch_norm", *TURNED, *VIEWED, "linear"],
    ),
    "weights that vary": (
        lambda x: ops.linear(ops.flatten(conv(x), 1), WEIGHT * ops.mean(x)),
        ["conv", "mean", "mul", "flatten", "linear"],
    ),
    "numbers that vary": (
        lambda x: layer(
            ops.batch_norm(ops.tanh(conv(x)), MEAN * ops.mean(x), VAR, SCALE, SHIFT)
        ),
        ["conv_then", "mean", "mul", "batch_norm", *TURNED, *VIEWED, "linear"],
    ),
    "nobody reads it": (
        lambda x: (ops.flatten(conv(x), 1), layer(conv(x)))[1],
        ["conv", *TURNED, *VIEWED, "linear"],
    ),
}


def leaves(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", CASES)
def test_layers_take_what_comes_before_them(name: str) -> None:
    function, names = CASES[name]
    compiled = burn.compile(function)
    for seed in range(4):
        x = burn.from_numpy(normal(2, 3, 4, 5, seed=seed + 20))
        if seed == 2:
            WEIGHT.set(WEIGHT.value * 1.5)
            SHIFT.set(SHIFT.value + 0.5)
        pairs = zip(leaves(compiled(x)), leaves(function(x)), strict=True)
        for found, expected in pairs:
            assert_close(found.numpy(), expected.numpy())
    assert sorted(left(compiled)) == sorted(names)
