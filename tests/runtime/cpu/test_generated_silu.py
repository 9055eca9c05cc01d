"""SiLU behind convolutions is a generated kernel of plans."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.jit.entries import GENERATED
from tests.runtime.onednn import assert_close, compare_calls, needs_onednn, normal
from tests.runtime.programs import kernels

pytestmark = needs_onednn
pytest.importorskip("llvmlite")

#: Input channels, results, groups and width of convolutions.
DENSE, DEPTHWISE, SMALL = (8, 32, 1, 32), (32, 32, 32, 32), (8, 8, 1, 9)


def layer(channels: int, outputs: int, groups: int, **static: Any) -> Any:
    weight = burn.from_numpy(normal(outputs, channels // groups, 3, 3, seed=1) / 3)
    bias = burn.from_numpy(normal(outputs, seed=2))
    static = {"padding": 1, "groups": groups, **static}
    return lambda x: ops.conv(x, weight, bias, **static)


def check(function: Any, *shape: int, **options: Any) -> list[str]:
    """Compare four calls with eager ones, and return the kernels."""
    return kernels(compare_calls(function, *shape, **options))


@pytest.mark.parametrize(
    ("case", "is_apart"), [(DENSE, True), (DEPTHWISE, True), (SMALL, False)]
)
def test_silu_is_apart_where_it_is_large(case: Any, is_apart: bool) -> None:
    channels, outputs, groups, width = case
    conv = layer(channels, outputs, groups)

    def function(x: Any) -> Any:
        return ops.silu(conv(x))

    shape = (1, channels, width, width)
    found = check(function, *shape)
    assert (GENERATED in found) == is_apart
    assert GENERATED not in check(function, *shape, generated=False)


def test_silu_between_layers_and_before_a_residual() -> None:
    first, second = layer(*DENSE[:3]), layer(32, 32, 1, stride=2)
    third = layer(32, 32, 32)

    def function(x: Any) -> Any:
        y = ops.silu(second(ops.silu(first(x))))
        return ops.silu(third(y) + y) + y

    assert GENERATED in check(function, 2, 8, 64, 64)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, -300.0])
def test_large_numbers_are_those_of_eager_calls(value: float) -> None:
    conv = layer(*DENSE[:3])
    compiled = burn.compile(lambda x: ops.silu(conv(x)))
    array = normal(1, 8, 32, 32)
    for seed in range(4):
        if seed == 2:
            array[0, 3, 5, 7] = value
        x = burn.from_numpy(array.copy())
        with np.errstate(all="ignore"):
            actual, expected = compiled(x).numpy(), ops.silu(conv(x)).numpy()
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(actual[~finite], expected[~finite])
        assert_close(actual[finite], expected[finite])


def test_gradients_are_those_of_eager_calls() -> None:
    conv = layer(*DENSE[:3])

    def slopes(x: Any) -> Any:
        x = x.to(burn.Autodiff(burn.Cpu())).require_grad()
        return ops.sum(ops.silu(conv(x))).backward()[x]

    assert GENERATED not in check(slopes, 1, 8, 32, 32)
