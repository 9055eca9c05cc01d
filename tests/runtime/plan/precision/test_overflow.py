"""Infinities and NaN that arise inside of a plan come out as in eager calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import normal
from tests.runtime.plan.fusion.test_images import box
from tests.runtime.programs import program_of

E = 8
SQUARE, LINE, OTHER = box(E, E, seed=1), box(E, seed=2), box(E, seed=3)
SPREAD = burn.Buffer(burn.from_numpy(np.abs(normal(E, seed=4)) + 0.5))
WIDE, SMALL, POINT = (box(E, E, n, n, seed=5 + n) for n in (3, 2, 1))
SLOPES = box(E, 1, 1, seed=9)

#: What is finite for small numbers, and NaN or infinite for large ones.
SOURCES: dict[str, Callable[[Any], Any]] = {
    "difference of infinities": lambda x: ops.exp(x) - ops.exp(x * 1.5),
    "zero times infinity": lambda x: ops.exp(x) * ops.exp(-x),
    "division": lambda x: x / ops.exp(-x * x),
    "mean of squares": lambda x: (
        x / ops.sqrt(ops.mean(ops.exp(x * x), -1, keepdims=True))
    ),
    "root": lambda x: ops.sqrt(700.0 - ops.abs(x)),
    "products": lambda x: (x * 1e18) @ ops.transpose(x * 1e16, -1, -2) @ x,
    "layers": lambda x: ops.linear(ops.linear(x * 1e33, SQUARE) * 1e2, SQUARE, LINE),
    "one layer": lambda x: ops.linear(x * 2.0**117, SQUARE),
    "images": lambda x: ops.conv(ops.conv(x * 1e34, POINT), WIDE, padding=1),
}
#: What may give a number for NaN, or NaN for an infinity, in the engine.
ENDS: dict[str, Callable[[Any], Any]] = {
    "relu": ops.relu,
    "linear, relu": lambda x: ops.relu(ops.linear(x, SQUARE, LINE)),
    "linear, clip": lambda x: ops.clip(ops.linear(x, SQUARE), -1.0, 6.0),
    "linear, gelu": lambda x: ops.gelu(ops.linear(x, SQUARE)),
    "linear, norm": lambda x: ops.relu(ops.linear(x, SQUARE) * LINE + OTHER),
    "matmul, relu": lambda x: ops.relu(x @ ops.transpose(x, -1, -2) * 1e-3),
    "conv, relu": lambda x: ops.relu(ops.conv(x, WIDE, LINE, padding=1)),
    "conv, norm, relu": lambda x: ops.relu(
        ops.batch_norm(ops.conv(x, WIDE, padding=1), LINE, SPREAD, OTHER, LINE)
    ),
    "conv, residual": lambda x: ops.relu(ops.conv(x, POINT) + x),
    "conv": lambda x: ops.conv(x, WIDE, padding=1),
    "conv 2x2, silu": lambda x: ops.silu(ops.conv(x, SMALL)),
    "max_pool": lambda x: ops.max_pool(x, kernel_size=2),
    "avg_pool": lambda x: ops.avg_pool(x, kernel_size=2),
    "chain": lambda x: ops.relu(x * x[:, ::-1] + x) * 2.0,
    "gelu": ops.gelu,
    "silu": ops.silu,
    "hard_swish": ops.hard_swish,
    "hard_sigmoid": ops.hard_sigmoid,
    "mish": ops.mish,
    "elu": ops.elu,
    "selu": ops.selu,
    "softplus": ops.softplus,
    "leaky_relu": ops.leaky_relu,
    "prelu": lambda x: ops.prelu(x, SLOPES),
    "clip": lambda x: ops.clip(x, -1.0, 1.0),
    "softmax": ops.softmax,
    "attention": lambda x: ops.attention(x, x, x),
    "layer_norm": lambda x: ops.layer_norm(x, LINE, OTHER),
    "rms_norm": lambda x: ops.rms_norm(x, LINE),
    "group_norm": lambda x: ops.relu(ops.group_norm(x, LINE, OTHER, groups=2)),
    "reductions": lambda x: ops.concat([ops.max(x, -1), ops.min(x, -1)], -1),
    "quotient": lambda x: 1.0 / (1.0 + ops.relu(x)),
}


def folded_linear(x: Any) -> Any:
    """Return the end "linear, norm", with the factors of the norm in the weights."""
    weight = SQUARE.value * ops.reshape(LINE.value, (E, 1))
    return ops.relu(ops.linear(x, weight, OTHER))


def folded_conv(x: Any) -> Any:
    """Return the end "conv, norm, relu", with the factors of the norm in the
    weights.
    """
    factor = OTHER.value / ops.sqrt(SPREAD.value + 1e-5)
    weight = WIDE.value * ops.reshape(factor, (E, 1, 1, 1))
    shift = LINE.value - LINE.value * factor
    return ops.relu(ops.conv(x, weight, shift, padding=1))


#: Ends whose sums have other terms in plans, which overflow for other numbers.
FOLDED = {"linear, norm": folded_linear, "conv, norm, relu": folded_conv}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.sampled(6)
def test_what_overflows_inside(end: str) -> None:
    for source, first in SOURCES.items():
        ways = [ENDS[end], FOLDED.get(end, ENDS[end])]
        run, other = (lambda x, f=f, g=first: f(g(x)) for f in ways)
        compare(run, source, other=other)


@pytest.mark.parametrize("generated", [False, True])
def test_deep_networks_that_overflow(generated: bool) -> None:
    if generated:
        pytest.importorskip("llvmlite")
    layers = [box(E, E, 3, 3, seed=n) for n in range(12)]

    def network(x: Any) -> Any:
        for weight in layers:
            x = ops.relu(ops.conv(x, weight, padding=1) * 3e3) + x
        return ops.mean(x, (2, 3))

    compare(network, "12 layers", generated=generated)


@pytest.mark.parametrize("column", [0, 5, -1])
@pytest.mark.parametrize("end", [ops.softmax, ops.log_softmax])
def test_one_element_of_a_row_that_is_not_finite(end: Any, column: int) -> None:
    def run(x: Any) -> Any:
        return end(ops.exp(x) - ops.exp(x * 1.5))

    plan, images = burn.compile(run), normal(64, 256)
    for _ in range(3):
        plan(burn.from_numpy(images))
    images[3, column] = 100.0
    actual = plan(burn.from_numpy(images)).numpy()
    np.testing.assert_array_equal(np.isnan(actual).sum(1), 256 * (np.arange(64) == 3))


def test_gradients_that_overflow() -> None:
    def slopes(x: Any) -> Any:
        x = x.to(burn.Autodiff(burn.Cpu())).require_grad()
        y = ops.relu(ops.linear(ops.exp(x) - ops.exp(x * 1.5), SQUARE))
        return ops.sum(ops.max_pool(y, kernel_size=2) ** 2.0).backward()[x]

    compare(slopes, "gradients")


def test_a_plan_is_used_again_when_numbers_are_finite() -> None:
    layer = nn.Linear(E, E)
    plan = burn.compile(lambda x: ops.relu(layer(ops.exp(x) - ops.exp(2.0 * x))))
    small, large = (burn.from_numpy(normal(2, E) * n) for n in (1, 1e3))
    for x in (small, small, large, large, small):
        plan(x)
    assert program_of(plan).run([small.data]).numpy().shape == (2, E)
    assert not plan.notes


def compare(
    function: Callable[[Any], Any],
    name: str,
    *,
    generated: bool = False,
    other: Callable[[Any], Any] | None = None,
) -> None:
    """Assert that a plan made for small numbers is right for large ones, and back.

    ``other`` computes the same by sums of other terms.
    """
    plan = burn.compile(function, generated=generated)
    images = normal(2, E, E, E, seed=20)
    for scale in (1e-3, 1e-3, 1e3, 1e3, 1e-3, 30.0, 1e-3):
        x = burn.from_numpy(images * np.float32(scale))
        runs = eager(function, x) + ([] if other is None else eager(other, x))
        result, expected, message = plan(x).numpy(), runs[0], f"{name} of {scale}"
        finite = np.isfinite(expected)
        most = float(np.abs(expected[finite]).max(initial=0.0)) or 1.0
        is_certain = np.all([are_alike(run, expected, most) for run in runs], axis=0)
        is_right = are_alike(result, expected, most)
        assert is_right[is_certain].all(), message
    assert not plan.notes


def are_alike(array: Any, other: Any, most: float) -> Any:
    """Return where two arrays have one number, or the same infinity, or NaN both."""
    with np.errstate(all="ignore"):
        near = np.abs(array / most - other / most) <= 1e-4
    return near | (array == other) | np.isnan(array) & np.isnan(other)


def eager(function: Callable[[Any], Any], x: Any) -> list[Any]:
    """The results of eager calls of different code.

    Whether a sum overflows on the way depends on its order.
    """
    results = [function(x).numpy()]
    with engine.numpy_only():
        results.append(function(x).numpy())
    with engine.whatever_size():
        results += [function(x).numpy() for _ in range(2)]
    return results
