"""Compiled functions on CUDA devices: graphs that give what eager calls give."""

import gc
import threading
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cuda.graphs.graph import CapturedGraph
from tests.runtime.onnx_node import normal

pytestmark = pytest.mark.cuda


class Network(nn.Module):
    """Images to a vector: convolutions, a norm, a linear layer, a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, kernel_size=3, padding=1)
        self.second = nn.Conv2d(8, 8, kernel_size=3, padding=1, groups=2)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 5)

    def __call__(self, x: Any) -> Any:
        x = ops.gelu(self.first(x))
        x = ops.relu(self.second(x) + x)
        return ops.softmax(self.head(self.norm(ops.mean(x, (2, 3)))))


@pytest.fixture
def device() -> Any:
    pytest.importorskip("cupy")
    return burn.Cuda(0)


def on(device: Any, *shape: int, seed: int = 0) -> Any:
    return burn.from_numpy(normal(*shape, seed=seed), device)


def test_graphs_give_what_eager_calls_give(device: Any) -> None:
    net = Network().to(device)
    compiled = burn.compile(net)
    for call in range(6):
        x = on(device, 2, 3, 9 + call % 2, 7, seed=call)
        np.testing.assert_allclose(compiled(x).numpy(), net(x).numpy(), atol=1e-5)
    assert compiled.notes == []


def test_results_are_not_overwritten_by_the_next_call(device: Any) -> None:
    net = Network().to(device)
    compiled = burn.compile(net)
    inputs = [on(device, 2, 3, 9, 7, seed=seed) for seed in range(5)]
    results = [compiled(x) for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        np.testing.assert_allclose(result.numpy(), net(x).numpy(), atol=1e-5)


@pytest.mark.parametrize("value", (np.nan, np.inf, -np.inf))
def test_numbers_that_are_not_finite(device: Any, value: float) -> None:
    compiled = burn.compile(lambda x: ops.softmax(ops.relu(x) * 2 + ops.silu(x)))
    for call in range(4):
        x = normal(4, 5, seed=call)
        x[1, call] = value
        there = compiled(burn.from_numpy(x, device)).numpy()
        here = ops.softmax(ops.relu(x) * 2 + ops.silu(x)).numpy()
        np.testing.assert_allclose(there, here, atol=1e-5)


def test_parameters_that_are_set_are_read_again(device: Any) -> None:
    net = Network().to(device)
    compiled = burn.compile(net)
    x = on(device, 2, 3, 9, 7)
    for step in range(12):
        weight = on(device, 5, 8, seed=step)
        net.head.weight.set(weight)
        np.testing.assert_allclose(compiled(x).numpy(), net(x).numpy(), atol=1e-5)
    assert compiled.notes == []  # from the third capture on they are copied


def test_ever_new_parameters_that_are_set_run_kernel_by_kernel(device: Any) -> None:
    weights = [nn.Parameter(on(device, 4, 4, seed=seed)) for seed in range(12)]

    def function(x: Any) -> Any:
        for weight in weights:
            x = ops.tanh(x @ weight)
        return x

    compiled, x = burn.compile(function), on(device, 3, 4)
    for call, weight in enumerate(weights):
        weight.set(on(device, 4, 4, seed=20 + call))
        result, expected = compiled(x).numpy(), function(x).numpy()
        np.testing.assert_allclose(result, expected, atol=1e-5)
    assert any("parameters are set" in note for note in compiled.notes)


def test_gradients(device: Any) -> None:
    net = Network()
    x, there = normal(2, 3, 9, 7), net.to(burn.Autodiff(device))

    def gradients(x: Any) -> list[Any]:
        grads = (there(x) ** 2).sum().backward()
        return [grads[p] for _, p in there.parameters()]

    compiled = burn.compile(gradients)
    for _ in range(4):
        given = burn.from_numpy(x, device)
        for part, other in zip(compiled(given), gradients(given), strict=True):
            np.testing.assert_allclose(part.numpy(), other.numpy(), atol=1e-5)


def test_a_function_that_reads_values_is_a_graph_between_them(device: Any) -> None:
    def function(x: Any) -> Any:
        y = ops.tanh(ops.softmax(x @ x) + x)
        if y.sum().item() > 0:
            z = ops.softmax(y @ x) @ y
            return z * 2 if z.max().item() > 1 else ops.tanh(z @ x) + 1
        return ops.softmax(y @ y) @ x - 1

    compiled = burn.compile(function)
    for call in range(18):
        x = on(device, 4, 4, seed=call % 6)
        np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), atol=1e-5)
    assert compiled.notes == []
    graphs: Any = compiled.executables[0]
    assert graphs.kernels


def test_steps_around_one_that_waits_for_the_device_are_graphs(device: Any) -> None:
    net = Network().to(device)

    def function(x: Any, y: Any) -> Any:
        places = ops.nonzero(x > 0)
        return net(y) + 1, places, ops.softmax(net(y * 2)) * 2

    compiled = burn.compile(function)
    for call in range(4):
        x, y = on(device, 3, 4), on(device, 2, 3, 9, 7, seed=call)
        for actual, expected in zip(compiled(x, y), function(x, y), strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), atol=1e-5)
    assert compiled.notes == []
    graphs: Any = compiled.executables[0]
    assert graphs.kernels


def test_positions_that_change_their_number(device: Any) -> None:
    compiled = burn.compile(lambda x: ops.nonzero(x > 0))
    for call in range(4):
        x = on(device, 3, 4, seed=call)
        expected = np.stack(np.nonzero(x.numpy() > 0))
        assert compiled(x).numpy().size == expected.size


def test_threads_on_streams_of_their_own(device: Any) -> None:
    net = Network().to(device)
    compiled = burn.compile(net)
    compiled(on(device, 2, 3, 9, 7))
    wrong: list[Any] = []

    def work(seed: int) -> None:
        with device.cupy.cuda.Stream(non_blocking=True):
            for call in range(20):
                x = on(device, 2, 3, 9, 7, seed=100 * seed + call)
                there, here = compiled(x).numpy(), net(x).numpy()
                if not np.allclose(there, here, atol=1e-5):
                    wrong.append((seed, call))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_graphs_go_with_their_functions(device: Any) -> None:
    net, x = Network().to(device), on(device, 2, 3, 9, 7)
    for _ in range(5):
        compiled = burn.compile(net)
        for _ in range(3):
            compiled(x)
        assert compiled.notes == []
        del compiled
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, CapturedGraph)]


def test_memory_of_graphs_is_released(device: Any) -> None:
    compiled = burn.compile(Network().to(device))
    x = on(device, 2, 3, 9, 7)
    for _ in range(3):
        result = compiled(x)
    executable: Any = compiled.executables[0]
    captured = executable._first.executable._captured
    pools = (captured._pool, captured._memory._pool)
    assert captured._pool.total_bytes()
    executable.release_memory()
    del captured
    gc.collect()
    assert [pool.total_bytes() for pool in pools] == [0, 0]
    assert np.isfinite(result.numpy()).all()
    np.testing.assert_allclose(compiled(x).numpy(), result.numpy(), atol=1e-5)
