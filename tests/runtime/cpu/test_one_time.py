"""The kernels of calls that are made once: NumPy's for small models."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops
from burn.backend.cpu import one_time
from burn.backend.cpu.one_time import OneTimeCalls, numpy_time
from burn.backend.cpu.onednn.binding.engine import current
from burn.primitive import PLAN_ONLY, primitives

#: Primitives whose kernels oneDNN has from their first call: those of gradients, whose
#: values are bitwise the eager ones, and those whose time with NumPy is not estimated.
AT_ONCE = """
batch_norm_grad batch_norm_train conv_weight_grad gelu_grad getitem_grad gru_grad
layer_norm_grad lstm_grad relu_grad rnn_grad softmax_grad take_grad window_argmax
window_scatter update_slice einsum
"""

SMALL = """
import sys
import burn
from burn import nn, ops

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, kernel_size=3, padding=1)
        self.head = nn.Linear(8, 4)

    def __call__(self, x):
        return self.head(ops.relu(self.conv(x)).mean((2, 3)))

net = burn.compile(Net())
x = burn.tensor([[[[0.5] * 8] * 8] * 3])
first = net(x)
package = "burn.backend.cpu.onednn."
modules = (name.removeprefix(package) for name in sys.modules if package in name)
print(sorted(name for name in modules if "." in name))
print(abs((net(x) - first).numpy()).max() < 1e-5)
"""


def random(*shape: int) -> burn.Tensor:
    values = np.random.default_rng(0).standard_normal(shape)
    return burn.from_numpy(values.astype(np.float32))


def test_the_first_call_of_a_small_model_imports_nothing_of_onednn() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SMALL], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "True"], done.stderr


def test_a_large_call_is_the_devices_and_so_are_later_ones() -> None:
    calls = OneTimeCalls()
    seen: list[str] = []
    calls._device = NotingDevice(seen)  # type: ignore[assignment]
    weight, image = random(64, 3, 7, 7), random(2, 3, 448, 448)
    static = {"stride": 2, "padding": 3, "dilation": 1, "groups": 1}
    calls.call(ops.add, (random(8), random(8)), {})
    assert seen == []
    calls.call(ops.conv, (image, weight), static)
    assert seen == ["conv"]
    medium = random(1, 8, 64, 64)
    for _ in range(2):  # the second time oneDNN would have its code
        calls.call(ops.gelu, (medium,), {})
    assert seen == ["conv", "gelu"]


def test_one_call_of_some_milliseconds_does_not_load_the_engine() -> None:
    calls = OneTimeCalls()
    seen: list[str] = []
    calls._device = NotingDevice(seen)  # type: ignore[assignment]
    x, weight = random(1, 64, 64, 64), random(64, 64, 3, 3)
    result = calls.call(ops.conv, (x, weight), {"padding": 1})
    assert seen == []
    assert numpy_time(ops.conv, [x.shape, weight.shape], {}) > 2e6
    expected = ops.conv(x, weight, padding=1).numpy()
    np.testing.assert_allclose(result.data, expected, 1e-3, 1e-3)


class NotingDevice:
    """A device that notes the names of its calls."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def call(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        self._names.append(primitive.name)
        return Cpu().call(primitive, args, static)

    def import_tensor(self, tensor: burn.Tensor) -> Any:
        return Cpu().import_tensor(tensor)


@pytest.mark.parametrize(("steps", "layout"), [(4, 0), (4, 1), (400, 0), (400, 1)])
def test_a_short_recurrent_layer_is_numpys(steps: int, layout: int) -> None:
    calls = OneTimeCalls()
    seen: list[str] = []
    calls._device = NotingDevice(seen)  # type: ignore[assignment]
    x = random(1, steps, 8) if layout else random(steps, 1, 8)
    weights = random(1, 24, 8), random(1, 24, 8)
    static = {"hidden_size": 8, "layout": layout}
    outputs, _ = calls.call(ops.gru, (x, *weights), static)
    assert seen == ([] if steps == 4 else ["gru"])
    expected, _ = ops.gru(x, *weights, **static)
    np.testing.assert_allclose(outputs.data, expected.numpy(), 1e-5, 1e-5)


def test_many_small_calls_end_at_the_time_that_loading_takes() -> None:
    calls, x = OneTimeCalls(), random(64, 128)
    static: dict[str, Any] = {}
    time = numpy_time(ops.gelu, [x.shape], static)
    assert 0 < time < one_time.LARGE
    for _ in range(int(2 * one_time.LOADING / time / one_time.SAVED)):
        calls.call(ops.gelu, (x,), static)
    assert calls._lost >= one_time.LOADING


def test_memory_of_freed_arrays_is_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(one_time, "reuse_freed", sizes.append)
    calls, small = OneTimeCalls(), random(8, 16, 32)
    for x in (small, random(2, 64, 512), random(2, 64, 1024), random(2, 64, 512)):
        calls.call(ops.add, (x, x), {})
    assert sizes == [4 * 4 * 2 * 64 * 512, 4 * 4 * 2 * 64 * 1024]
    monkeypatch.setattr(one_time, "REUSED", 1 << 20)
    calls.call(ops.add, (random(2, 64, 3072),) * 2, {})
    assert sizes[2:] == [1 << 20]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.softmax(ops.gelu(x), axis=-1),
        lambda x: ops.conv(x, x[:1, :, :3, :3], padding=1),
        lambda x: ops.max_pool(x, kernel_size=2) + ops.avg_pool(x, kernel_size=2),
        lambda x: ops.matmul(x, x.mT).sum((1, 2)),
        lambda x: ops.split(x, (1, 3), axis=1)[1] * 2.0,
    ],
)
@pytest.mark.parametrize("shape", [(2, 4, 8, 8), (1, 4, 8, 8)])
def test_all_calls_agree_with_eager_ones(
    function: Callable[[burn.Tensor], burn.Tensor], shape: tuple[int, ...]
) -> None:
    x, compiled = random(*shape), burn.compile(function)
    expected = function(x).numpy()
    for _ in range(3):
        result = compiled(x)
        assert result.backend is Cpu()
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_empty_operands_and_errors_are_those_of_eager_calls() -> None:
    compiled = burn.compile(lambda x, y: ops.matmul(x, y))
    assert compiled(random(0, 4), random(4, 2)).shape == (0, 2)
    with pytest.raises(ValueError, match="matmul") as raised:
        compiled(random(2, 3), random(4, 2))
    notes = getattr(raised.value, "__notes__", [])
    assert notes == ["in ops.matmul(float32[2, 3], float32[4, 2])"]


class Step(nn.Module):
    """A layer with a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, kernel_size=3, padding=1)

    def __call__(self, x: burn.Tensor) -> burn.Tensor:
        result = ops.gelu(self.conv(x))
        return (result * result).mean()


@pytest.mark.skipif(current() is None, reason="NumPy is the engine")
def test_values_with_gradients_are_bitwise_those_of_eager_calls() -> None:
    model, x = Step().to(Autodiff(Cpu())), random(2, 3, 16, 16)

    def step(x: burn.Tensor) -> Any:
        loss = model(x)
        return loss.detach(), dict(loss.backward().items())

    eager, recorded = step(x), burn.compile(step)(x)
    assert eager[0].numpy().tobytes() == recorded[0].numpy().tobytes()


def test_each_kernel_has_an_estimate_or_is_called_at_once() -> None:
    Cpu().load_kernels()
    own = {n: p for n, p in primitives().items() if p.__module__.startswith("burn.")}
    kernels = {n: p for n, p in own.items() if Cpu in p.device_kernels}
    estimated = {n for n, p in own.items() if p.numpy_time is not None}
    planned = {n for n, p in kernels.items() if p.gradient_reason == PLAN_ONLY}
    assert estimated == {*kernels} - planned - {*AT_ONCE.split()}
