"""Optimizers follow the references step for step, eager and as one plan."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, optim
from tests.runtime.optim.cases import (
    CASES,
    SHAPES,
    STEPS,
    Case,
    given,
    gradients,
    parameters,
    start,
)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("compiled", [False, True])
def test_steps_are_those_of_the_reference(case: Case, compiled: bool) -> None:
    boxes = parameters()
    opt = case.ours(boxes, **case.options)
    step: Any = burn.compile(opt.step) if compiled else opt.step
    for number in range(STEPS):
        step(given(number))
    for name in SHAPES:
        expected = case.reference(start(name), gradients(name), **case.options)
        assert np.abs(expected - start(name)).max() > 0.01
        np.testing.assert_allclose(boxes[name].numpy(), expected, 1e-8, 1e-9)
    assert float(opt.count) == STEPS
    if compiled:
        assert not step.notes
        assert len(step.executables) == 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_state_goes_into_a_dictionary_and_back(case: Case) -> None:
    whole, first = parameters(), parameters()
    opt, early = case.ours(whole, **case.options), case.ours(first, **case.options)
    for number in range(6):
        opt.step(given(number))
        if number < 3:
            early.step(given(number))
    values = {name: box.numpy().copy() for name, box in first.items()}
    state = {name: value.numpy().copy() for name, value in early.state_dict().items()}
    again = parameters()
    later = case.ours(again, **case.options)
    later.step(given(9))  # what is loaded replaces this
    for name, value in values.items():
        again[name].set(burn.tensor(value))
    later.load_state_dict(state)
    for number in range(3, 6):
        later.step(given(number))
    for name in SHAPES:
        np.testing.assert_array_equal(again[name].numpy(), whole[name].numpy())


def quadratic(box: burn.Parameter) -> Tensor:
    """A badly conditioned function whose minimum is at (1, 2, 3)."""
    wide = (box - burn.tensor(np.array([1.0, 2.0, 3.0]))) * burn.tensor(
        np.array([1.0, 5.0, 20.0])
    )
    return (wide * wide).sum() + (wide * wide * wide * wide).sum() * 0.01


def test_lbfgs_finds_a_minimum() -> None:
    box = burn.Parameter(burn.tensor(np.zeros(3), Autodiff(Cpu())))
    opt = optim.LBFGS({"x": box}, lr=0.8)
    before = quadratic(box).item()
    assert opt.step(lambda: quadratic(box)).item() == before
    for _ in range(4):
        opt.step(lambda: quadratic(box))
    np.testing.assert_allclose(box.numpy(), [1, 2, 3], atol=1e-5)


def test_lbfgs_goes_on_from_its_state() -> None:
    boxes = [burn.Parameter(burn.tensor(np.zeros(3), Autodiff(Cpu()))) for _ in "ab"]
    one, other = (optim.LBFGS({"x": box}, lr=0.5, max_iter=3) for box in boxes)
    one.step(lambda: quadratic(boxes[0]))
    other.load_state_dict({k: v.numpy() for k, v in one.state_dict().items()})
    boxes[1].set(boxes[0].value.detach())
    one.step(lambda: quadratic(boxes[0]))
    other.step(lambda: quadratic(boxes[1]))
    np.testing.assert_array_equal(boxes[0].numpy(), boxes[1].numpy())
    assert np.abs(boxes[0].numpy()).max() > 0.01


def net() -> nn.Sequential:
    nn.init.seed(4)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).to(
        Autodiff(Cpu())
    )


def test_rates_of_a_compiled_step_change_without_another_plan() -> None:
    model, eager = net(), net()
    opts = [optim.AdamW(each, lr=0.1) for each in (model, eager)]

    def stepping(index: int) -> Any:
        def step(x: Tensor) -> Tensor:
            loss = ((model, eager)[index](x) ** 2.0).mean()
            opts[index].step(loss.backward())
            return loss.detach()

        return step

    run, plain = burn.compile(stepping(0)), stepping(1)
    x = burn.tensor(np.random.default_rng(0).standard_normal((8, 4), np.float32))
    for number in range(12):
        for opt in opts:
            opt.lr = 0.1 / (1 + number)
        np.testing.assert_allclose(run(x).numpy(), plain(x).numpy(), rtol=1e-5)
    (plan,) = run._plans.values()
    assert plan.count == 1
    assert not run.notes


def test_vectors_are_a_group() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 2))
    model.to(Autodiff(Cpu()))
    groups = {optim.vectors(model): {"weight_decay": 0.0}, "2.*": {"lr": 0.5}}
    opt = optim.AdamW(model, lr=0.1, weight_decay=0.2, groups=groups)
    assert [sorted(group.parameters) for group in opt.groups] == [
        ["0.weight"],
        ["0.bias", "1.bias", "1.weight"],
        ["2.bias"],
        ["2.weight"],
    ]
    assert [group["weight_decay"] for group in opt.groups] == [0.2, 0.0, 0.0, 0.2]
    assert optim.vectors(dict(model.parameters())) == optim.vectors(model)
    with pytest.raises(ValueError, match=r"got '3\.\*'; there are"):
        optim.AdamW(model, groups={("2.*", "3.*"): {"lr": 0.5}})


def test_groups_have_options_of_their_own() -> None:
    model = net()
    opt = optim.SGD(
        model,
        lr=0.5,
        weight_decay=0.1,
        groups={"*.bias": {"weight_decay": 0.0}, "2": {"lr": 0.0}},
    )
    assert [sorted(group.parameters) for group in opt.groups] == [
        ["0.weight"],
        ["0.bias"],
        ["2.bias"],
        ["2.weight"],
    ]
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    opt.step({name: burn.tensor(value * 0) for name, value in before.items()})
    after = {name: value.numpy() for name, value in model.state_dict().items()}
    np.testing.assert_allclose(after["0.weight"], before["0.weight"] * 0.95, 1e-6)
    for name in ("0.bias", "2.bias", "2.weight"):
        np.testing.assert_array_equal(after[name], before[name])


def test_a_closure_returns_the_loss() -> None:
    box = burn.Parameter(burn.tensor(np.ones(2), Autodiff(Cpu())))
    opt, closure = optim.LBFGS({"x": box}, lr=0.5), lambda: ((box**2).sum(), 1)
    with pytest.raises(TypeError, match="closure that returns the loss, got tuple"):
        opt.step(closure)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -0.1}, "expected lr >= 0, got -0.1"),
        ({"lr": 0.1, "clip_norm": 0.0}, "expected clip_norm > 0, got 0.0"),
        ({"lr": 0.1, "clip_value": -1.0}, "expected clip_value > 0, got -1.0"),
        ({"lr": 0.1, "groups": {"conv.*": {}}}, "'conv.*'; there are 0.weight"),
        ({"lr": 0.1, "groups": {"0.*": {"rate": 1}}}, r"got \['rate'\]"),
        ({"lr": 0.1, "betas": (0.9, 1.0)}, "expected betas in"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        optim.Adam(net(), **options)


def test_a_new_head_that_is_not_in_training_is_named() -> None:
    model = net()
    model._steps[2] = nn.Linear(6, 5)
    with pytest.raises(ValueError, match="2.weight, 2.bias: expected parameters on an"):
        optim.SGD(model)
    opt = optim.SGD(model.to(Autodiff(Cpu())))
    with pytest.raises(ValueError, match="at least one parameter"):
        opt.step(net()(burn.tensor(np.ones((2, 4), np.float32))).mean().backward())


def test_frozen_parameters_stay() -> None:
    model = net().freeze("0")
    before = {name: box.numpy().copy() for name, box in model.parameters()}
    opt = optim.AdamW(model, lr=0.1)
    x = burn.tensor(np.ones((2, 4), np.float32))
    grads = model(x).mean().backward()
    assert len(grads) == 2
    opt.step(grads)
    changed = {
        name
        for name, box in model.parameters()
        if np.abs(box.numpy() - before[name]).max() > 0
    }
    assert changed == {"2.weight", "2.bias"}
    assert not [key for key in opt.state_dict() if key.startswith("0.")]
    opt.step(model.unfreeze()(x).mean().backward())
    assert np.abs(model[0].weight.numpy() - before["0.weight"]).max() > 0
    with pytest.raises(ValueError, match="'decoder'; there are 0.weight"):
        model.freeze("decoder")


def test_gradients_are_clipped() -> None:
    arrays = {"a": np.array([3.0, -4.0]), "b": np.array([[12.0]])}
    grads = {name: burn.tensor(array) for name, array in arrays.items()}
    assert optim.total_norm(grads).item() == 13.0
    clipped = optim.clip_grad_norm(grads, 6.5)
    for name, array in arrays.items():
        np.testing.assert_allclose(clipped[name].numpy(), array / 2, 1e-6)
        same = optim.clip_grad_norm(grads, 14.0)[name]
        np.testing.assert_array_equal(same.numpy(), array)
        limited = optim.clip_grad_value(grads, 3.5)[name]
        np.testing.assert_array_equal(limited.numpy(), np.clip(array, -3.5, 3.5))
    home = Autodiff(Cpu())
    boxes = {n: burn.Parameter(burn.tensor(a * 0, home)) for n, a in arrays.items()}
    optim.SGD(boxes, lr=1.0, clip_norm=1.0, clip_value=4.0).step(grads)
    moved = np.array([-3.0, 4.0, -4.0]) / np.sqrt(9 + 16 + 16)
    actual = np.concatenate([box.numpy().ravel() for box in boxes.values()])
    np.testing.assert_allclose(actual, moved, 1e-6)


def test_averages_follow_the_weights() -> None:
    model = net()
    ema = optim.EMA(model, decay=0.9)
    expected = model[0].weight.numpy().copy()

    def step() -> None:
        model[0].weight.set(model[0].weight.value.detach() + 1.0)
        ema.update()

    run = burn.compile(step)
    for _ in range(5):
        run()
        expected += (model[0].weight.numpy() - expected) * np.float32(0.1)
    np.testing.assert_allclose(
        dict(ema.averaged().parameters())["0.weight"].numpy(), expected, 1e-5
    )
    other = optim.EMA(net(), decay=0.9)
    other.load_state_dict(ema.state_dict())
    np.testing.assert_array_equal(
        other.averages["0.weight"].numpy(), ema.averages["0.weight"].numpy()
    )
    with pytest.raises(ValueError, match="0.weight"):
        other.load_state_dict({"step": 1.0})


def test_several_optimizers_are_one() -> None:
    model = net()
    every = dict(model.parameters())
    matrices = {p: b for p, b in every.items() if b.ndim == 2}
    vectors = {p: b for p, b in every.items() if b.ndim != 2}
    opt = optim.Combined(optim.Muon(matrices, lr=0.1), optim.AdamW(vectors, lr=0.1))
    schedule = optim.exponential(opt, 0.5)
    before = {path: box.numpy().copy() for path, box in every.items()}
    x = burn.tensor(np.ones((2, 4), np.float32))
    opt.step(model(x).mean().backward())
    schedule.step()
    assert [float(group.lr) for group in opt.groups] == [0.05, 0.05]
    for path, box in every.items():
        assert np.abs(box.numpy() - before[path]).max() > 0, path
    state = {key: value.numpy() for key, value in opt.state_dict().items()}
    assert {"0.0.weight.momentum_buffer", "1.2.bias.exp_avg"} <= state.keys()
    opt.load_state_dict(state)
    with pytest.raises(ValueError, match="different parameters"):
        optim.Combined(optim.SGD(model), optim.SGD(vectors))
    with pytest.raises(ValueError, match=r"0.bias: expected a matrix, got \[6\]"):
        optim.Muon(model)


def test_parameters_without_paths_are_refused() -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    boxes = [box for _, box in model.parameters()]
    for items in ([{"params": boxes, "lr": 0.1}], boxes):
        message = r"parameters by path, got an item of type (dict|Parameter); groups="
        with pytest.raises(TypeError, match=message):
            optim.SGD(items, lr=0.1)  # type: ignore[arg-type]
    optim.SGD(dict(model.parameters()), lr=0.1)


def test_an_optimizer_that_was_made_before_the_adapters() -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    opt = optim.SGD(model, lr=0.1)
    nn.lora(model, "*", rank=1)
    value = (model(burn.tensor([[1.0, 2.0]])) ** 2.0).mean()
    with pytest.raises(
        ValueError, match="lora_A, lora_B: the optimizer was made before"
    ):
        opt.step(value.backward())
