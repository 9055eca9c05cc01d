"""Gradients of tensors of several elements, and gradients by name."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops, optim, train
from burn.primitive import primitives


def leaf(*values: float) -> Any:
    return burn.tensor(np.array(values), Autodiff(Cpu())).require_grad()


@pytest.mark.parametrize("backend", [Cpu(), Autodiff(Cpu())])
def test_a_seed_weighs_elements(backend: Any) -> None:
    x = leaf(1.0, 2.0, 3.0)
    seed = burn.tensor(np.array([1.0, 10.0, -2.0]), backend)
    grads = (x * x).backward(seed)
    np.testing.assert_array_equal(grads[x].numpy(), [2.0, 40.0, -12.0])


def test_seeds_are_in_the_shape_and_dtype_of_the_tensor() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(ValueError, match="or give the gradient of each element"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"expected a gradient float64\[2\], got floa"):
        (x * x).backward(burn.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="depends on no parameter"):
        ops.exp(x.detach()).backward(burn.tensor(np.ones(2)))


def test_gradients_by_name_leave_out_frozen_parameters() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).to(Autodiff(Cpu()))
    model.freeze("*.bias")
    x = burn.tensor(np.ones((4, 2), np.float32))
    grads = model(x).mean().backward()
    named = grads.by_name(model)
    assert list(named) == ["0.weight", "1.weight"]
    assert named["1.weight"] is grads[dict(model.parameters())["1.weight"]]
    with pytest.raises(ValueError, match="depends on no parameter"):
        model.freeze()(x).mean().backward()


def test_arrays_are_no_gradients() -> None:
    y: Any = leaf(1.0, 2.0) * 2.0
    with pytest.raises(TypeError, match="expected a tensor as gradient, got ndarray"):
        y.backward(np.ones(2))


def test_tapes_keep_only_the_values_that_gradients_read() -> None:
    x = y = burn.tensor(np.ones(2**17), Autodiff(Cpu())).require_grad()
    tracemalloc.start()
    for _ in range(20):
        y = ops.relu(ops.reshape(y * 0.5 + 1.0, (2, -1)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One result of relu a turn, where three results would be 60 MiB.
    assert held < 22 * 2**20
    np.testing.assert_allclose(y.sum().backward()[x].numpy(), 0.5**20)


class Net(nn.Module):
    """[N, 3, 8, 8] to five classes, by the primitives with declared reads."""

    def __init__(self) -> None:
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.first, self.layer_norm = nn.Linear(36, 8), nn.LayerNorm(8)
        self.second, self.scale = nn.Linear(8, 5), nn.parameter(4, 1)

    def __call__(self, x: Any) -> Any:
        x = ops.flatten(ops.relu(self.norm(self.conv(x))), 2)
        x = ops.gelu(self.layer_norm(self.first(x) - self.scale.value))
        weights = ops.softmax(x @ ops.transpose(x, 1, 2) / (self.scale.value + 2.0))
        x = ops.sigmoid(ops.permute(weights @ x, (0, 2, 1))).reshape((x.shape[0], 4, 8))
        return ops.log_softmax(self.second(ops.tanh(x)[:, 1:].mean(1)))


@pytest.mark.parametrize("frozen", ["nothing", "*.weight", "scale", "conv*"])
def test_gradients_are_those_of_tapes_that_keep_all_values(
    frozen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nn.init.seed(0)
    model = Net().to(Autodiff(Cpu()))
    if frozen != "nothing":
        model.freeze(frozen)
    generator = np.random.default_rng(0)
    x = burn.tensor(generator.standard_normal((2, 3, 8, 8), np.float32))
    gradients = [(model(x) * model(x)).sum().backward().by_name(model)]
    for each in primitives().values():
        monkeypatch.setattr(each, "reads", None)
    gradients.append((model(x) * model(x)).sum().backward().by_name(model))
    assert list(gradients[0]) == list(gradients[1])
    for path, gradient in gradients[0].items():
        np.testing.assert_array_equal(
            gradient.numpy(), gradients[1][path].numpy(), path
        )


@pytest.mark.parametrize("compiled", [False, True])
def test_history_ends_with_the_training_step(compiled: bool) -> None:
    model = nn.Linear(3, 2).to(Autodiff(Cpu()))
    kept: list[Any] = []

    @train.step(model, optim.SGD(model, lr=0.1), compiled=compiled)
    def step(x: Any) -> Any:
        kept.append(model(x).sum())
        return kept[-1]

    step(burn.tensor(np.ones((4, 3), np.float32)))
    with pytest.raises(ValueError, match="was dropped by the backward pass of its tr"):
        kept[0].backward()
    kept[0] = model(burn.tensor(np.ones((4, 3), np.float32))).sum()
    first = kept[0].backward()[model.weight].numpy()
    np.testing.assert_array_equal(kept[0].backward()[model.weight].numpy(), first)


@pytest.mark.parametrize("operation", (ops.sum, ops.mean))
def test_tensors_of_axes_are_kept(operation: Any) -> None:
    axes = burn.tensor(np.array([1]), Autodiff(Cpu()))
    gradients = []
    for axis in (axes, 1):
        x = leaf(1.0, 2.0, 3.0)
        total = operation(x.reshape((1, 3)), axis).sum()
        gradients.append(total.backward()[x].numpy())
    np.testing.assert_array_equal(*gradients)
