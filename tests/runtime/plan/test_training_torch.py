"""Steps of training, as they are measured, are PyTorch's: losses and gradients."""

from typing import Any

import numpy as np
import pytest

import burn
from benchmarks import training_ours
from burn import Autodiff, Cpu, ops

#: Batches, smaller than those that are measured.
SHAPES = {
    "resnet18": (3, 3, 64, 96),
    "bert_tiny": (3, 17),
    "digits_cnn": (5, 1, 28, 28),
    "vit_tiny": (2, 3, 224, 224),
}
CLASSES = {"resnet18": 1000, "bert_tiny": 2, "digits_cnn": 10, "vit_tiny": 1000}
STEPS = 4
#: The largest error relative to the largest element, and that of half of the steps. In
#: some steps rounding changes a sign before ReLU, and so all gradients before it.
TOLERANCES = {"resnet18": (2e-2, 1e-4)}
#: The magnitude below which gradients are compared absolutely: rounding of many layers.
LEAST = {"vit_tiny": 1e-3, "bert_tiny": 1e-3}


def batch(name: str, seed: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    shape, classes = SHAPES[name], CLASSES[name]
    if len(shape) == 2:
        x: Any = generator.integers(0, 40, shape)  # so that tokens come repeatedly
    else:
        x = generator.standard_normal(shape, np.float32)
    chosen = generator.integers(0, classes, shape[0])
    return x, np.eye(classes, dtype=np.float32)[chosen]


def gradients_of(net: Any) -> Any:
    """A step that gives the loss and all gradients, and descends by them."""

    def step(x: Any, target: Any) -> Any:
        loss = ops.mean(-ops.sum(ops.log_softmax(net(x)) * target, -1))
        grads = loss.backward()
        results = [grads[box] for _, box in net.parameters()]
        for _, box in net.parameters():
            box.set(box.value.detach() - grads[box] * 0.01)
        return loss.detach(), results

    return step


def made(name: str) -> Any:
    net = training_ours.NETWORKS[name]().to(Autodiff(Cpu()))
    for seed, (_, box) in enumerate(net.parameters()):
        drawn = np.random.default_rng(seed).standard_normal(box.shape)
        scale = 0.5 / np.sqrt(np.prod(box.shape[1:])) if box.ndim > 1 else 0.2
        start = 0.0 if box.ndim > 1 else 1.0
        box.set(burn.from_numpy((start + drawn * scale).astype(np.float32)))
    return net


def assert_near(actual: Any, expected: Any, what: str, least: float = 1e-6) -> None:
    """Within 1e-4 of the largest element, or of ``least`` if that is more.

    What is zero but for rounding (the gradient of a bias of keys) has no digits.
    """
    scale = max(float(np.abs(expected).max(initial=0.0)), least)
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=1e-4 * scale, err_msg=what
    )


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.sampled(6)
def test_compiled_steps_are_eager_ones(name: str) -> None:
    eager, planned = made(name), made(name)
    one, other = gradients_of(eager), burn.compile(gradients_of(planned))
    for seed in range(STEPS):
        given = [burn.from_numpy(array) for array in batch(name, seed)]
        (a, expected), (b, result) = one(*given), other(*given)
        assert_near(b.numpy(), a.numpy(), "loss")
        for (key, box), x, y in zip(eager.parameters(), result, expected, strict=True):
            least = LEAST.get(name, 1e-4)
            assert_near(x.numpy(), y.numpy(), f"{key} in step {seed}", least)
            planned_box = dict(planned.parameters())[key]
            planned_box.set(box.value.detach())  # differences do not add up
    assert not other.notes


@pytest.mark.torch
@pytest.mark.parametrize("name", SHAPES)
def test_gradients_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    from benchmarks import training_torch

    ours, theirs = made(name), training_torch.NETWORKS[name]()
    weights = {key: torch.tensor(box.numpy()) for key, box in ours.parameters()}
    theirs.load_state_dict(weights, strict=False)
    step = burn.compile(gradients_of(ours))
    errors = []
    for seed in range(STEPS):
        x, target = batch(name, seed)
        theirs.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            theirs(torch.from_numpy(x)), torch.from_numpy(target)
        )
        loss.backward()
        result, grads = step(*map(burn.from_numpy, (x, target)))
        assert_near(result.numpy(), loss.detach().numpy(), "loss")
        parameters, largest = dict(theirs.named_parameters()), 0.0
        for (key, box), grad in zip(ours.parameters(), grads, strict=True):
            exact = parameters[key].grad.numpy()
            scale = max(float(np.abs(exact).max()), LEAST.get(name, 1e-4))
            largest = max(largest, float(np.abs(grad.numpy() - exact).max()) / scale)
            with torch.no_grad():
                parameters[key].copy_(torch.tensor(box.numpy()))
        errors.append(largest)
    of_any, of_half = TOLERANCES.get(name, (1e-4, 1e-4))
    assert max(errors) < of_any
    assert sorted(errors)[STEPS // 2 - 1] < of_half
