"""Plans go by what primitives declare, and not by names of functions and files."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops
from burn.plan.plan_ir import Step
from burn.primitive import primitive
from tests.runtime.onednn import normal
from tests.runtime.programs import optimized


@primitive(removable=True, no_gradient="only forward is tested")
def removable_for_plans(x: Any) -> Any:
    """Twice ``x``."""
    return x + x


@primitive(no_gradient="only forward is tested")
def lasting_for_plans(x: Any) -> Any:
    """Twice ``x``."""
    return x + x


#: Activations whose gradients are of primitives for any use.
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: ops.maximum(x, 0.0),
    "where": lambda x: ops.where(x > 0.0, x, 0.1 * x),
    "abs": ops.abs,
    "clip of two": lambda x: ops.minimum(ops.maximum(x, -1.0), 1.0),
}


@pytest.mark.parametrize("of", ["input", "weight"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_forward_of_a_plan_with_gradients_is_as_in_eager_calls(
    name: str, of: str
) -> None:
    """Or an activation lets other elements pass than the gradient expects."""
    backend = Autodiff(Cpu())
    weight = burn.Parameter(burn.from_numpy(normal(64, 64, 3, 3) / 20))
    if of == "weight":
        weight.to(backend)

    def function(x: Any) -> Any:
        tracked = x.to(backend)
        if of == "input":
            tracked = tracked.require_grad()
        y = ACTIVATIONS[name](ops.conv(tracked, weight, padding=1))
        grads = ops.sum(y).backward()
        return y.detach(), grads[tracked if of == "input" else weight].detach()

    plan, x = burn.compile(function), burn.from_numpy(normal(1, 64, 80, 60))
    for _ in range(3):
        actual = plan(x)
    assert not plan.notes
    expected = function(x)
    np.testing.assert_array_equal(actual[0].numpy(), expected[0].numpy())
    np.testing.assert_allclose(
        actual[1].numpy(), expected[1].numpy(), rtol=1e-4, atol=1e-3
    )


def test_a_call_that_nobody_reads_goes_if_its_primitive_says_so() -> None:
    calls: list[str] = []

    def function(x: Any) -> Any:
        removable_for_plans(x)
        lasting_for_plans(x)
        return x * 2.0

    for result in (removable_for_plans, lasting_for_plans):
        result.on(Cpu)(counting(result.kernel, result.name, calls))
    plan, x = burn.compile(function), burn.from_numpy(normal(3))
    plan(x)
    calls.clear()
    for _ in range(3):
        plan(x)
    assert set(calls) == {"lasting_for_plans"}


def counting(
    kernel: Callable[..., Any], name: str, calls: list[str]
) -> Callable[..., Any]:
    def counted(*args: Any) -> Any:
        calls.append(name)
        return kernel(*args)

    return counted


def test_dead_elementwise_calls_of_floats_go() -> None:
    """Those of integers stay: a division by zero is an error of the function."""

    def function(x: Any, n: Any) -> Any:
        ops.exp(x * 2.0)
        ops.floor_div(n, n - 1)
        return x + 1.0

    plan, n = burn.compile(function), burn.from_numpy(np.array([2, 3]))
    plan(burn.from_numpy(normal(3)), n)
    names = [s.primitive.name for s in optimized(plan).steps if isinstance(s, Step)]
    assert "exp" not in names
    assert "mul" not in names
    assert "floor_div" in names


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("name", ["expand", "reshape", "split"])
def test_shapes_that_tensors_tell_are_read_in_every_call(name: str, depth: int) -> None:
    """Also where nothing but the shape is used of a result, or of what reads it."""
    shapes = [[2, 4, 6], [2, 4, 6], [4, 2, 6], [4, 2, 6], [2, 4, 6]]
    x = burn.from_numpy(normal(*((6,) if name == "expand" else (8, 6))))

    def function(x: Any, shape: Any) -> Any:
        if name == "split":
            y = ops.split(x, ops.concat([shape[:1], 8 - shape[:1]]), 0)[0]
        else:
            y = getattr(ops, name)(x, shape)
        for _ in range(depth):
            y = ops.linear(ops.exp(y), np.ones((5, 6), np.float32))
        return ops.array(y.shape)

    plan = burn.compile(function)
    for shape in shapes:
        given = burn.from_numpy(np.array(shape))
        expected = function(x, given).numpy()
        np.testing.assert_array_equal(plan(x, given).numpy(), expected)


@pytest.mark.parametrize("reduce", [ops.sum, ops.mean, ops.max, ops.min])
def test_a_reduction_that_nobody_reads_is_removed(reduce: Any) -> None:
    def function(x: Any) -> Any:
        reduce(x * x, 1)
        return x + 1.0

    plan = burn.compile(function)
    plan(burn.from_numpy(normal(3, 4)))
    names = [s.primitive.name for s in optimized(plan).steps if isinstance(s, Step)]
    assert names == ["add"]
