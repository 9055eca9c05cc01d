"""Batch norms with fixed statistics in training."""

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, ops, optim, train

RNG = np.random.default_rng(0)
IMAGES = [RNG.normal(2, 3, (6, 3, 5, 4)).astype(np.float32) for _ in range(6)]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        self.norm = nn.BatchNorm1d(4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.norm(ops.relu(self.stem(x)).mean((2, 3)))


def make() -> Net:
    nn.init.seed(0)
    return Net().to(Autodiff(Cpu()))


def stepped(model: Net, compiled: bool) -> "train.Step[[Tensor], Tensor]":
    optimizer = optim.SGD(model, lr=0.1)

    @train.step(model, optimizer, compiled=compiled)
    def step(x: Tensor) -> Tensor:
        return ((model(x) - 1.0) ** 2.0).mean()

    return step


def statistics(model: Net) -> dict[str, np.ndarray]:
    return {
        path: box.numpy().copy() for path, box in model.boxes() if "running" in path
    }


@pytest.mark.parametrize("compiled", [False, True])
def test_they_stay_in_steps_until_they_are_released(compiled: bool) -> None:
    model = make()
    step = stepped(model, compiled)
    step(burn.from_numpy(IMAGES[0]))
    keys = list(model.state_dict())
    assert nn.freeze_statistics(model, "stem") is model
    before = statistics(model)
    weight = model.stem[1].weight.numpy().copy()
    for image in IMAGES[1:4]:
        step(burn.from_numpy(image))
    after = statistics(model)
    same = {path for path in before if np.array_equal(before[path], after[path])}
    assert same == {"stem.1.running_mean", "stem.1.running_var"}
    assert np.any(model.stem[1].weight.numpy() != weight)
    assert list(model.state_dict()) == keys
    nn.freeze_statistics(model, frozen=False)
    step(burn.from_numpy(IMAGES[4]))
    assert all(np.any(after[path] != each) for path, each in statistics(model).items())


def test_results_are_those_of_inference_with_gradients() -> None:
    model = nn.freeze_statistics(make(), "*")
    x = burn.from_numpy(IMAGES[0])
    y = model(x)
    np.testing.assert_allclose(y.numpy(), model.valid()(x).numpy(), rtol=1e-5)
    gradients = (y * y).sum().backward().by_name(model)
    norm, features = model.norm, ops.relu(model.stem(x)).mean((2, 3)).numpy()
    unit = (features - norm.running_mean.numpy()) / np.sqrt(
        norm.running_var.numpy() + norm.eps
    )
    expected = (2 * y.numpy() * unit).sum(0)
    np.testing.assert_allclose(gradients["norm.weight"].numpy(), expected, rtol=1e-4)
    assert "stem.0.weight" in gradients


def test_a_pattern_without_batch_norms_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got 'head'; there are stem\.1, norm"):
        nn.freeze_statistics(make(), "head")
