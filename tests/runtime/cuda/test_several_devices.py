"""A device that is not CuPy's current one: eager calls, plans and steps of training."""

import warnings
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops, optim, train
from burn.tensor import innermost

pytestmark = pytest.mark.cuda


@pytest.fixture
def second() -> Any:
    """The second device; peer access, of which CuPy warns, is an error."""
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two CUDA devices")
    with warnings.catch_warnings():
        warnings.simplefilter("error", cupy._util.PerformanceWarning)
        yield burn.Cuda(1)


def values() -> Any:
    return np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)


def network() -> nn.Sequential:
    nn.init.seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 4))


def test_calls_and_plans(second: Any) -> None:
    expected = network()(burn.from_numpy(values())).numpy()
    model = network().to(second)
    x = burn.from_numpy(values(), second)
    compiled = burn.compile(model)
    for result in (model(x), *(compiled(x) for _ in range(3))):
        assert result.data.device.id == 1
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert compiled.notes == []


def test_steps_of_training(second: Any) -> None:
    losses = {}
    for device in (burn.Cpu(), second):
        model = network().to(burn.Autodiff(device))
        optimizer = optim.AdamW(model, lr=0.01)

        @train.step(model, optimizer)
        def step(x: Any, model: Any = model) -> Any:
            return ops.mean(model(x) ** 2)

        x = burn.from_numpy(values(), device)
        losses[repr(device)] = [float(step(x).numpy()) for _ in range(4)]
        for parameter in model.state_dict().values():
            array = innermost(parameter).data
            assert device is not second or array.device.id == 1
    np.testing.assert_allclose(losses["Cuda(1)"], losses["Cpu()"], rtol=1e-4)
