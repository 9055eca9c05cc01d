"""Convolutions of one position become linear layers, others stay."""

from typing import Any

import pytest

import burn
from burn import ops
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, normal
from tests.runtime.programs import optimized


def box(*shape: int, seed: int) -> burn.Parameter:
    return burn.Parameter(burn.from_numpy(normal(*shape, seed=seed)))


WHOLE, BIAS = box(5, 3, 4, 6, seed=1), box(5, seed=2)
POINT, LINE = box(5, 3, 1, seed=3), box(5, 3, 4, seed=4)
GROUPED, STRIDED = box(6, 1, 4, 6, seed=5), box(5, 3, 2, 2, seed=6)
LAYER = ["linear", "reshape", "reshape", "reshape"]

#: Functions, the shapes of what they are given, and the primitives that are left.
CASES: dict[str, tuple[Any, tuple[int, ...], list[str]]] = {
    "whole": (lambda x: ops.conv(x, WHOLE, BIAS), (2, 3, 4, 6), LAYER),
    "without bias": (lambda x: ops.conv(x, WHOLE), (2, 3, 4, 6), LAYER),
    "one element": (lambda x: ops.conv(x, POINT, BIAS), (4, 3, 1), LAYER),
    "with strides": (lambda x: ops.conv(x, LINE, stride=3), (4, 3, 4), LAYER),
    "several positions": (lambda x: ops.conv(x, POINT), (2, 3, 5), ["conv"]),
    "a larger image": (lambda x: ops.conv(x, WHOLE), (2, 3, 5, 6), ["conv"]),
    "padded": (lambda x: ops.conv(x, LINE, padding=1, stride=9), (2, 3, 4), ["conv"]),
    "in groups": (
        lambda x: ops.conv(ops.concat([x, x], 1), GROUPED, groups=6),
        (2, 3, 4, 6),
        ["concat", "conv"],
    ),
    "weights that vary": (
        lambda x: ops.conv(x, WHOLE * ops.mean(x)),
        (2, 3, 4, 6),
        ["mean", "mul", "conv"],
    ),
    "part of an image": (
        lambda x: ops.conv(x, STRIDED, stride=5),
        (1, 3, 4, 6),
        ["conv"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions_of_one_position_are_layers(name: str) -> None:
    function, shape, names = CASES[name]
    compiled = burn.compile(function)
    for seed in range(4):
        x = burn.from_numpy(normal(*shape, seed=seed + 20))
        if seed == 2:
            WHOLE.set(WHOLE.value * 1.5)
            BIAS.set(BIAS.value + 0.5)
        assert_close(compiled(x).numpy(), function(x).numpy())
    steps = optimized(compiled).steps
    found = [step.primitive.name for step in steps if isinstance(step, Step)]
    assert sorted(found) == sorted(names)
