"""Schedules give the rates of closed forms, eager and in a plan."""

import math
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, optim
from tests.runtime.optim.schedules import LR, SCHEDULES

CLOSED = {name: s for name, s in SCHEDULES.items() if not math.isnan(s.rate(0))}


def optimizer() -> optim.Optimizer:
    box = burn.Parameter(burn.tensor(np.zeros(2), Autodiff(Cpu())))
    return optim.SGD({"x": box}, lr=LR)


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("compiled", [False, True])
def test_rates_are_those_of_the_closed_form(name: str, compiled: bool) -> None:
    schedule = CLOSED[name].ours(optimizer())
    step: Any = burn.compile(schedule.step) if compiled else schedule.step
    for number in range(50):
        expected = CLOSED[name].rate(number)
        assert schedule.lr == pytest.approx(expected, rel=1e-12, abs=1e-16), number
        step()
    if compiled:
        assert len(step.executables) == 1
        assert not step.notes


def test_groups_keep_their_ratio_and_a_new_rate_is_followed() -> None:
    boxes = {
        name: burn.Parameter(burn.tensor(np.zeros(2), Autodiff(Cpu())))
        for name in ("body", "head")
    }
    opt = optim.SGD(boxes, lr=0.1, groups={"head": {"lr": 1.0}})
    schedule = optim.exponential(opt, 0.5)
    step = burn.compile(schedule.step)
    for _ in range(3):
        step()
    assert [float(group.lr) for group in opt.groups] == [0.1 / 8, 1.0 / 8]
    opt.lr = 0.4
    step()
    assert [float(group.lr) for group in opt.groups] == [0.4 / 16, 0.4 / 16]


def test_a_schedule_goes_on_from_its_state() -> None:
    one, other = (optim.cosine(optimizer(), 20, warmup=3) for _ in "ab")
    for _ in range(7):
        one.step()
    state = {name: value.numpy() for name, value in one.state_dict().items()}
    other.load_state_dict(state)
    assert other.lr == one.lr
    one.step()
    other.step()
    assert other.lr == one.lr == pytest.approx(cosine_at(8))


def cosine_at(step: int) -> float:
    return LR * (1 + math.cos(math.pi * (step - 3) / 17)) / 2


def test_milestones_are_between_schedules() -> None:
    opt = optimizer()
    with pytest.raises(
        ValueError, match="expected 1 milestones for 2 schedules, got 0"
    ):
        optim.sequential(opt, [optim.constant(opt), optim.constant(opt)], [])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda opt: optim.linear(opt, 0), "expected steps >= 1, got 0"),
        (lambda opt: optim.cosine(opt, 0), "expected steps >= 1, got 0"),
        (lambda opt: optim.cosine(opt, 5, warmup=5), "expected steps >= 6, got 5"),
        (lambda opt: optim.warmup(opt, -1), "expected steps >= 0, got -1"),
        (lambda opt: optim.step(opt, 0), "expected step_size >= 1, got 0"),
        (lambda opt: optim.exponential(opt, -0.9), "expected gamma >= 0, got -0.9"),
        (lambda opt: optim.noam(opt, 8, 0), "expected warmup >= 1, got 0"),
        (lambda opt: optim.one_cycle(opt, 0.1, 0), "expected steps >= 1, got 0"),
    ],
)
def test_numbers_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(optimizer())


def test_no_warmup_is_the_initial_rate() -> None:
    schedule = optim.warmup(optimizer(), 0)
    for _ in range(3):
        assert schedule.lr == LR
        schedule.step()
