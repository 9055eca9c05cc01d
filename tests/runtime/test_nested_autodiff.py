"""Gradients of gradients by parameters: Autodiff over Autodiff."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, ops, optim, train
from burn.plan.compiled import Compiled

ONCE = Autodiff(Cpu())
TWICE = Autodiff(ONCE)
BALANCED = Autodiff(Autodiff(Cpu(), checkpointing="balanced"), checkpointing="balanced")
RNG = np.random.default_rng(4)
TARGETS = burn.tensor([0, 2, 1, 1])
#: Functions of an input and parameters, and the shapes of these.
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "linear": (lambda x, w, b: ops.tanh(ops.linear(x, w, b)), [(4, 3), (5, 3), (5,)]),
    "layer_norm": (
        lambda x, w, b: ops.layer_norm(ops.gelu(x), w, b, axis=-1),
        [(4, 3), (3,), (3,)],
    ),
    "batch_norm": (
        lambda x, w, b: ops.batch_norm_train(x, w, b)[0],
        [(4, 3), (3,), (3,)],
    ),
    "conv": (
        lambda x, w, b: ops.sigmoid(ops.conv(x, w, b, padding=1)),
        [(1, 2, 4, 4), (2, 2, 3, 3), (2,)],
    ),
    "attention": (
        lambda x, w, b: ops.attention(x @ w, x + b, x * b, causal=True),
        [(1, 2, 4, 3), (3, 3), (3,)],
    ),
    "lstm": (
        lambda x, w, r: ops.lstm(x, w, r)[0],
        [(3, 2, 2), (1, 8, 2), (1, 8, 2)],
    ),
    "gru": (
        lambda x, w, r: ops.gru(x, w, r)[0],
        [(3, 2, 2), (1, 6, 2), (1, 6, 2)],
    ),
    "cross_entropy": (
        lambda x, w, b: loss.cross_entropy(ops.linear(x, w, b), TARGETS),
        [(4, 3), (5, 3), (5,)],
    ),
}


class Params(nn.Module):
    """Parameters of float64, and a function of them whose result is squared."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.function, shapes = FUNCTIONS[name]
        arrays = [np.random.default_rng(k).normal(size=s) for k, s in enumerate(shapes)]
        self.x = burn.tensor(arrays[0])
        self.items = nn.ParameterList(nn.Parameter(burn.tensor(a)) for a in arrays[1:])

    def __call__(self) -> Tensor:
        result = self.function(self.x, *self.items)
        return (result * result + result).sum()


def _products(backend: Any, name: str, directions: list[Any]) -> list[Any]:
    """Return the Hessian of a function times ``directions``, by two backward passes."""
    model = Params(name).to(backend)
    first = model().backward().by_name(model)
    pairs = zip(first.values(), directions, strict=True)
    along = sum((g * d).sum() for g, d in pairs)
    assert isinstance(along, Tensor)
    return [g.numpy() for g in along.backward().by_name(model).values()]


def _gradients_at(name: str, directions: list[Any], amount: float) -> list[Any]:
    """Return the gradients after a move of the parameters along ``directions``."""
    model = Params(name).to(ONCE)
    for box, direction in zip(model.items, directions, strict=True):
        box.set(burn.tensor(box.numpy() + amount * direction))
    gradients = model().backward().by_name(model)
    return [g.numpy() for g in gradients.values()]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("backend", [TWICE, BALANCED], ids=["kept", "balanced"])
def test_hessian_vector_products(name: str, backend: Any) -> None:
    shapes = FUNCTIONS[name][1][1:]
    directions = [RNG.normal(size=shape) for shape in shapes]
    step = 1e-5
    ahead = _gradients_at(name, directions, step)
    behind = _gradients_at(name, directions, -step)
    expected = [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
    for got, want in zip(_products(backend, name, directions), expected, strict=True):
        assert abs(want).max() > 1e-3
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7 * abs(want).max())


def _penalised(model: Any) -> Tensor:
    """Return a loss with the squares of its gradients, on the inner backend."""
    value = model()
    gradients = value.backward().by_name(model).values()
    squares = [(g * g).sum() for g in gradients]
    total: Tensor = value.inner() + sum(squares[1:], squares[0]) * 0.1
    return total


@pytest.mark.parametrize("compiled", [False, True])
def test_training_with_a_penalty_on_gradients(compiled: bool) -> None:
    model = Params("linear").to(TWICE)
    opt = optim.SGD(model, lr=0.01)

    def train() -> Tensor:
        total = _penalised(model)
        opt.step(total.backward())
        return total.detach()

    step = Compiled(train) if compiled else train
    losses = [float(step()) for _ in range(3)]
    expected = Params("linear").to(TWICE)
    for index in range(3):
        total = _penalised(expected)
        assert losses[index] == pytest.approx(float(total), rel=1e-9)
        gradients = total.backward().by_name(expected)
        for path, box in expected.parameters():
            array = box.numpy() - 0.01 * gradients[path].numpy()
            box.set(burn.tensor(array))
    assert losses[2] < losses[0]


def test_a_function_of_gradients_is_not_lost_in_a_sum_with_the_loss() -> None:
    model = Params("linear").to(TWICE)
    value = model()
    gradient = value.backward()[model.items[0]]
    with pytest.raises(ValueError, match=r"would be lost; call \.inner\(\)"):
        value + (gradient * gradient).sum()
    value + (gradient * gradient).sum().detach()


def test_leaves_of_an_inner_tape_alone_are_constants_of_the_outer() -> None:
    model = Params("linear").to(TWICE)
    x = burn.tensor(model.x.numpy()).to(ONCE).require_grad()
    model.x = x
    gradient = model().backward()[model.items[0]]
    mixed = (gradient * gradient).sum().backward()[x]
    assert mixed.shape == x.shape
    assert abs(mixed.numpy()).min() > 0


def test_a_device_has_no_inner_tensor() -> None:
    with pytest.raises(TypeError, match=r"expected a tensor on Autodiff\(\.\.\.\)"):
        burn.tensor(1.0).inner()


def penalized_losses(compiled: bool) -> tuple[list[float], list[str]]:
    """Return losses with a penalty on gradients of the input, and the notes."""
    nn.init.seed(0)
    model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 1)).to(TWICE)

    @train.step(model, optim.SGD(model, lr=1e-4), compiled=compiled)
    def step(x: Tensor) -> Tensor:
        leaf = x.to(TWICE).require_grad()
        value = model(leaf).sum()
        gradient = value.backward()[leaf]
        return value.inner() + (gradient * gradient).sum()

    x = burn.tensor(np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32))
    return [step(x).item() for _ in range(4)], step.notes


def test_a_penalty_on_gradients_of_the_input_has_a_plan() -> None:
    losses, notes = penalized_losses(True)
    assert notes == []
    np.testing.assert_allclose(losses, penalized_losses(False)[0], 1e-5, 1e-6)
    assert losses == sorted(losses, reverse=True)
