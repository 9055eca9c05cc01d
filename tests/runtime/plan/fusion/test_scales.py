"""What is done to the channels of layers is a part of their weights."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.fusion.test_fusion import left
from tests.runtime.plan.fusion.test_images import box

KERNEL, SMALL = box(6, 3, 3, 2, seed=1), box(6, 1, 3, 2, seed=2)
BIAS, SCALE, SHIFT = (box(6, 1, 1, seed=seed) for seed in (3, 4, 5))
SPREAD = burn.Parameter(burn.from_numpy(np.abs(normal(1, 6, 1, 1, seed=6)) + 0.5))
LINE, GAMMA, WEIGHT = box(6, seed=7), box(8, seed=8), box(8, 7, seed=9)
ROWS = box(5, 1, seed=10)  # as many as the results have


def conv(x: Any, **static: Any) -> Any:
    return ops.conv(x, KERNEL, LINE, padding=1, **static)


def plain(x: Any) -> Any:
    return ops.conv(x, KERNEL, stride=2)


def both(y: Any) -> list[Any]:
    return [y, y * SCALE]


#: Functions of ``x`` [2, 3, 5, 7] with the primitives that are left of them.
CASES: dict[str, tuple[Any, str]] = {
    "norm written out": (
        lambda x: ops.relu(plain(x) * (SCALE / ops.sqrt(SPREAD)) + SHIFT),
        "sqrt div reshape mul reshape conv_then",
    ),
    "with a bias": (
        lambda x: SHIFT + SCALE * conv(x),
        "reshape mul reshape mul reshape add conv",
    ),
    "moved first": (
        lambda x: (conv(x) - SHIFT) / SPREAD,
        "reshape sub reshape div reshape div conv",
    ),
    "groups": (
        lambda x: ops.conv(x, SMALL, groups=3) * SPREAD - SHIFT,
        "reshape mul reshape sub conv",
    ),
    "gamma": (
        lambda x: ops.linear(x, WEIGHT, GAMMA) * GAMMA,
        "reshape mul reshape mul linear",
    ),
    "turned around": (lambda x: SHIFT - plain(x), "conv sub"),
    "divided by": (lambda x: SPREAD / plain(x), "conv div"),
    "used twice": (lambda x: both(plain(x)), "conv mul"),
    "of the input": (lambda x: plain(x) * x[0, 0, 0, 0], "conv getitem mul"),
    "one number": (lambda x: plain(x) * SPREAD[:, :1], "getitem conv mul"),
    "another axis": (lambda x: conv(x) * ROWS, "conv mul"),
    "more axes": (lambda x: conv(x) + SHIFT[None, None], "getitem conv add"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_computes_the_same(name: str) -> None:
    function, names = CASES[name]
    for seed in (21, 22):
        x = burn.from_numpy(normal(2, 3, 5, 7, seed=seed))
        expected = function(x)
        compiled = burn.compile(function)
        for _ in range(3):
            found = compiled(x)
        pairs = [(found, expected)]
        if isinstance(expected, list):
            pairs = list(zip(found, expected, strict=True))
        for one, other in pairs:
            assert_close(one.numpy(), other.numpy())
    assert left(compiled) == names.split()


def test_weights_that_are_set_are_scaled_again() -> None:
    x = burn.from_numpy(normal(2, 3, 5, 7))
    scale = box(6, 1, 1, seed=4)

    def run(x: Any) -> Any:
        return plain(x) * scale

    compiled = burn.compile(run)
    for seed in (4, 5, 6):
        scale.set(burn.from_numpy(normal(6, 1, 1, seed=seed)))
        for _ in range(2):
            assert_close(compiled(x).numpy(), run(x).numpy())
