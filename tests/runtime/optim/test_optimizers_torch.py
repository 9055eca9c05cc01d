"""Optimizers and schedules are those of torch.optim over 50 steps, to 1e-6."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, optim
from tests.runtime.optim.cases import (
    CASES,
    SHAPES,
    STEPS,
    gradients,
    parameters,
    start,
)
from tests.runtime.optim.schedules import SCHEDULES

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

#: What PyTorch has; Lion and Adan are not in it.
THEIRS = {
    "sgd": "SGD",
    "sgd_decay": "SGD",
    "momentum": "SGD",
    "nesterov": "SGD",
    "adam": "Adam",
    "adam_decay": "Adam",
    "amsgrad": "Adam",
    "adamw": "AdamW",
    "adamw_decay": "AdamW",
    "adagrad": "Adagrad",
    "adagrad_decay": "Adagrad",
    "rmsprop": "RMSprop",
    "rmsprop_centered": "RMSprop",
    "muon": "Muon",
    "muon_rms": "Muon",
}


def torch_parameters(dtype: Any) -> dict[str, Any]:
    return {
        name: torch.nn.Parameter(torch.from_numpy(start(name, dtype)))
        for name in SHAPES
    }


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("clip", [None, 1.5])
def test_steps_are_those_of_torch(
    name: str, clip: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    # Muon iterates in bfloat16 there, with other rounding; compare the algorithm.
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    boxes, theirs = parameters(np.float32), torch_parameters(np.float32)
    ours = case.ours(boxes, **case.options, clip_norm=clip)
    other = getattr(torch.optim, THEIRS[name])(theirs.values(), **case.options)
    step: Any = burn.compile(ours.step)
    for number in range(STEPS):
        for path, parameter in theirs.items():
            parameter.grad = torch.from_numpy(gradients(path, np.float32)[number])
        step({path: burn.tensor(p.grad.numpy()) for path, p in theirs.items()})
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(theirs.values(), clip)
        other.step()
    for path, parameter in theirs.items():
        np.testing.assert_allclose(
            boxes[path].numpy(), parameter.detach().numpy(), 1e-6, 1e-6, err_msg=path
        )


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("iterations", [1, 4, 20])
def test_lbfgs_is_that_of_torch(iterations: int, search: str | None) -> None:
    matrix = np.random.default_rng(1).standard_normal((6, 4))
    target = np.random.default_rng(2).standard_normal(6)
    box = burn.Parameter(burn.tensor(np.zeros(4), Autodiff(Cpu())))
    parameter = torch.nn.Parameter(torch.zeros(4, dtype=torch.float64))
    options: dict[str, Any] = {"lr": 0.3, "max_iter": iterations, "history_size": 3}
    options["line_search_fn"] = search
    ours = optim.LBFGS({"x": box}, **options)
    theirs = torch.optim.LBFGS([parameter], **options)

    def our_loss() -> burn.Tensor:
        wide = burn.tensor(matrix) @ box - burn.tensor(target)
        return (wide * wide).sum() + (wide * wide * wide * wide).sum()

    def their_loss() -> Any:
        theirs.zero_grad()
        wide = torch.from_numpy(matrix) @ parameter - torch.from_numpy(target)
        loss = (wide**2).sum() + (wide**4).sum()
        loss.backward()
        return loss

    for _ in range(50):
        actual, expected = ours.step(our_loss), theirs.step(their_loss)
        np.testing.assert_allclose(actual.item(), expected.item(), rtol=1e-9)
    np.testing.assert_allclose(box.numpy(), parameter.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", [n for n, s in SCHEDULES.items() if s.theirs])
def test_rates_are_those_of_torch(name: str) -> None:
    ours, _, theirs = SCHEDULES[name]
    assert theirs is not None
    box = burn.Parameter(burn.tensor(np.zeros(2), Autodiff(Cpu())))
    opt = optim.SGD({"x": box}, lr=0.3)
    other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.3)
    schedule, scheduler = ours(opt), theirs(torch.optim.lr_scheduler, other)
    for _ in range(STEPS):
        assert schedule.lr == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        other.step()
        schedule.step()
        scheduler.step()


def test_averages_are_those_of_torch() -> None:
    model = burn.nn.Linear(3, 2).to(Autodiff(Cpu()))
    linear = torch.nn.Linear(3, 2)
    linear.load_state_dict(
        {k: torch.from_numpy(v.numpy().copy()) for k, v in model.state_dict().items()}
    )
    average = torch.optim.swa_utils.AveragedModel(
        linear, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    average.update_parameters(linear)  # the first one is a copy there
    ema = optim.EMA(model, decay=0.9)
    for number in range(STEPS):
        value = np.full((2, 3), number, np.float32)
        model.weight.set(burn.tensor(value))
        linear.weight.data = torch.from_numpy(value)
        ema.update()
        average.update_parameters(linear)
    expected = average.module.weight.detach().numpy()
    np.testing.assert_allclose(ema.averages["weight"].numpy(), expected, 1e-6)
