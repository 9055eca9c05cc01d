"""Two steps that became one compute what both do."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops
from burn.backend.cpu.onednn.binding import engine
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, laid_out, normal
from tests.runtime.programs import program_of


class Net(nn.Module):
    """A convolution, and pooling of what it gives."""

    def __init__(self, bias: bool, **static: Any) -> None:
        self.conv = nn.Conv2d(3, 5, 3, padding=1, bias=bias)
        self.static = static

    def __call__(self, x: Any) -> Any:
        return ops.max_pool(self.conv(x), **self.static)


def gradients(net: Any) -> Any:
    def run(x: Any) -> Any:
        grads = (net(x) ** 2.0).sum().backward()
        return [grads[box] for _, box in net.parameters()]

    return run


def names(compiled: Any) -> list[str]:
    steps = program_of(compiled)._root.steps
    return [step.primitive.name for step in steps if isinstance(step, Step)]


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "static",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": ((1, 0), (0, 1))},
        {"kernel_size": 2, "dilation": 2, "ceil_mode": True, "stride": 3},
    ],
)
def test_gradients_with_pooling(static: Any, bias: bool, numpy: bool) -> None:
    net = Net(bias, **static).to(Autodiff(Cpu()))
    function = gradients(net)
    compiled = burn.compile(function)
    for turn in range(4):
        order = [(0, 1, 2, 3), (0, 2, 3, 1)][turn % 2]
        x = burn.from_numpy(laid_out(normal(2, 3, 9, 7, seed=turn), order))
        with engine.numpy_only() if numpy else engine.whatever_size():
            for a, b in zip(compiled(x), function(x), strict=True):
                assert_close(a.numpy(), b.numpy(), 1e-4)
    left = names(compiled)
    assert ("conv_grads" in left) == bias
    assert "max_pool_with_places" in left
    assert "window_argmax" not in left


def test_a_sum_over_other_axes_stays() -> None:
    def function(x: Any, grad: Any) -> Any:
        weight = ops.conv_weight_grad(x, grad, kernel_size=(2, 2))
        return weight, ops.sum(grad, (0, 2)), ops.sum(grad, (0, 2, 3), keepdims=True)

    compiled = burn.compile(function)
    given = [burn.from_numpy(a) for a in (normal(2, 3, 5, 6), normal(2, 4, 4, 5))]
    for _ in range(3):
        for a, b in zip(compiled(*given), function(*given), strict=True):
            assert_close(a.numpy(), b.numpy(), 1e-4)
    assert names(compiled) == ["conv_weight_grad", "sum", "sum"]


def test_the_largest_of_nan_is_nan() -> None:
    net = Net(True, kernel_size=2).to(Autodiff(Cpu()))
    compiled = burn.compile(lambda x: net(x).sum().backward()[net.conv.bias])
    for value in (1.0, np.nan, 2.0):
        x = burn.from_numpy(np.full((1, 3, 6, 6), value, np.float32))
        expected = net(x).sum().backward()[net.conv.bias].numpy()
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-5)
