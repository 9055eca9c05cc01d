"""Schedules with their rates in NumPy and, where PyTorch has them, in PyTorch."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from burn import optim

LR = 0.3


class Pair(NamedTuple):
    """A schedule of ours, the rate at a step, and the scheduler of PyTorch."""

    ours: Callable[[Any], optim.Schedule]
    rate: Callable[[int], float]
    theirs: Callable[[Any, Any], Any] | None


def cosine(step: int, steps: int, low: float) -> float:
    share = min(step / steps, 1.0)
    return low + (LR - low) * (1 + math.cos(math.pi * share)) / 2


def warm_cosine(step: int) -> float:
    if step < 8:
        return LR * step / 8
    return cosine(step - 8, 32, 0.01)


def one_cycle(step: int) -> float:
    top, bottom, last = 2.0, 2.0 / 25, 2.0 / 25e4
    share = step / 11 if step <= 11 else (step - 11) / 28
    start, end = (bottom, top) if step <= 11 else (top, last)
    return end + (start - end) * (1 + math.cos(math.pi * min(share, 1.0))) / 2


def sequence(step: int) -> float:
    if step < 10:
        return LR * (0.1 + 0.9 * min(step / 10, 1))
    return LR * 0.9 ** (step - 10) if step < 25 else LR * 0.5 ** ((step - 25) // 4)


def _sequential(opt: Any) -> optim.Schedule:
    parts = [
        optim.warmup(opt, 10, start=0.1),
        optim.exponential(opt, 0.9),
        optim.step(opt, 4, 0.5),
    ]
    return optim.sequential(opt, parts, [10, 25])


def _their_sequential(lib: Any, opt: Any) -> Any:
    parts = [
        lib.LinearLR(opt, 0.1, 1.0, 10),
        lib.ExponentialLR(opt, 0.9),
        lib.StepLR(opt, 4, 0.5),
    ]
    return lib.SequentialLR(opt, parts, [10, 25])


SCHEDULES = {
    "constant": Pair(
        lambda opt: optim.constant(opt, 0.5, 7),
        lambda step: LR * (0.5 if step < 7 else 1),
        lambda lib, opt: lib.ConstantLR(opt, 0.5, 7),
    ),
    "linear": Pair(
        lambda opt: optim.linear(opt, 20, 0.2, 0.6),
        lambda step: LR * (0.2 + 0.4 * min(step / 20, 1)),
        lambda lib, opt: lib.LinearLR(opt, 0.2, 0.6, 20),
    ),
    "cosine": Pair(
        lambda opt: optim.cosine(opt, 50, eta_min=0.02),
        lambda step: cosine(step, 50, 0.02),
        lambda lib, opt: lib.CosineAnnealingLR(opt, 50, 0.02),
    ),
    "warm_cosine": Pair(
        lambda opt: optim.cosine(opt, 40, warmup=8, eta_min=0.01), warm_cosine, None
    ),
    "exponential": Pair(
        lambda opt: optim.exponential(opt, 0.93),
        lambda step: LR * 0.93**step,
        lambda lib, opt: lib.ExponentialLR(opt, 0.93),
    ),
    "step": Pair(
        lambda opt: optim.step(opt, 6, 0.4),
        lambda step: LR * 0.4 ** (step // 6),
        lambda lib, opt: lib.StepLR(opt, 6, 0.4),
    ),
    "multistep": Pair(
        lambda opt: optim.multistep(opt, [3, 4, 30], 0.4),
        lambda step: LR * 0.4 ** ((step >= 3) + (step >= 4) + (step >= 30)),
        lambda lib, opt: lib.MultiStepLR(opt, [3, 4, 30], 0.4),
    ),
    "noam": Pair(
        lambda opt: optim.noam(opt, 512, 12),
        lambda step: LR * 512**-0.5 * min((step + 1) ** -0.5, (step + 1) * 12**-1.5),
        lambda lib, opt: lib.LambdaLR(
            opt, lambda n: 512**-0.5 * min((n + 1) ** -0.5, (n + 1) * 12**-1.5)
        ),
    ),
    "one_cycle": Pair(
        lambda opt: optim.one_cycle(opt, 2.0, 40),
        one_cycle,
        None,
    ),
    "one_cycle_torch": Pair(
        lambda opt: optim.one_cycle(opt, 2.0, 60, pct_start=0.4, div_factor=10),
        lambda step: math.nan,
        lambda lib, opt: lib.OneCycleLR(
            opt, 2.0, 60, pct_start=0.4, div_factor=10, cycle_momentum=False
        ),
    ),
    "sequential": Pair(_sequential, sequence, _their_sequential),
    "composed": Pair(
        lambda opt: optim.composed(
            opt, [optim.constant(opt, 0.1, 5), optim.exponential(opt, 0.9)]
        ),
        lambda step: LR * (0.1 if step < 5 else 1) * 0.9**step,
        lambda lib, opt: lib.ChainedScheduler(
            [lib.ConstantLR(opt, 0.1, 5), lib.ExponentialLR(opt, 0.9)]
        ),
    ),
}
