"""Compiled functions and training steps notice that a module was replaced."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, ops, optim, train
from burn.box import replacements


class Net(nn.Module):
    """[N, 4] to two numbers each."""

    def __init__(self) -> None:
        self.stem = nn.Linear(4, 3)
        self.body = nn.Sequential(nn.Linear(3, 3), ops.relu, nn.Linear(3, 3))
        self.heads = nn.ModuleList([nn.Linear(3, 2)])

    def __call__(self, x: Tensor) -> Tensor:
        return self.heads[0](self.body(self.stem(x)))


def replace_field(model: Net) -> None:
    model.stem = nn.Linear(4, 3)


def replace_parameter(model: Net) -> None:
    model.stem.bias = nn.parameter(3)


def replace_step(model: Net) -> None:
    model.body[1] = ops.tanh


def replace_last_step(model: Net) -> None:
    model.body[-1] = nn.Linear(3, 3, bias=False)


def replace_item(model: Net) -> None:
    model.heads[0] = nn.Linear(3, 5)


def add_adapters(model: Net) -> None:
    nn.lora(model, "stem", rank=2)
    dict(model.boxes())["stem.lora_B"].set(burn.tensor(np.ones((3, 2), np.float32)))


EDITS = (replace_field, replace_parameter, replace_step, replace_last_step)
X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


@pytest.mark.parametrize("edit", [*EDITS, replace_item, add_adapters])
def test_compiled_models_compute_what_the_edited_model_does(
    edit: Callable[[Net], None],
) -> None:
    model = Net()
    compiled = burn.compile(model)
    x = burn.from_numpy(X)
    before = [compiled(x).numpy() for _ in range(3)][-1]
    edit(model)
    expected = model(x).numpy()
    assert expected.shape != before.shape or not np.allclose(expected, before)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    assert compiled.notes == []


def test_training_goes_on_with_a_new_head() -> None:
    model = Net().to(Autodiff(Cpu()))

    def step_of(classes: int) -> Any:
        @train.step(model, optim.SGD(model, lr=0.1))
        def step(x: Tensor, y: Tensor) -> Tensor:
            return loss.cross_entropy(model(x), y)

        y = burn.from_numpy(np.arange(6) % classes)
        return [step(burn.from_numpy(X), y).item() for _ in range(5)]

    step_of(2)
    model.heads[0] = nn.Linear(3, 7).to(Autodiff(Cpu()))
    losses = step_of(7)
    assert losses[-1] < losses[0]


def test_slices_of_sequences_are_sequences_of_the_same_modules() -> None:
    model = Net()
    encoder = model.body[:-1]
    assert isinstance(encoder, nn.Sequential) and encoder[0] is model.body[0]
    x = burn.from_numpy(X[:, :3])
    np.testing.assert_array_equal(
        model.body[2](encoder(x)).numpy(), model.body(x).numpy()
    )


def test_copies_and_moves_leave_plans_valid() -> None:
    model = Net().to(Autodiff(Cpu()))
    before = replacements()
    model.valid()
    copy.deepcopy(model).to(Cpu())
    optim.EMA(model, decay=0.9).averaged()
    assert replacements() == before
