"""Learning rate schedules: functions of the step, computed with tensors."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burn import ops
from burn.attribute_hints import SCHEDULES, add_hints
from burn.optim.groups import Group
from burn.optim.state import Stateful, Values, device_of, fitted, scalar_box
from burn.tensor import Tensor, innermost

#: The learning rate at a step (from 0) by the initial one; all float64 scalars.
Shape = Callable[[Tensor, Tensor], Tensor]


class Schedule(Stateful):
    """A learning rate schedule: call ``schedule.step()`` after ``opt.step``.

    The step count is a box and the rate a function of tensors, so a compiled step
    includes the schedule without a new recording. ``optimizer`` is any object with
    ``groups``. The rate of step 0 is set at construction.
    """

    def __init__(self, optimizer: Any, shape: Shape) -> None:
        self.groups: list[Group] = optimizer.groups
        self.shape = shape
        self.count = scalar_box(0.0, device_of(self.groups[0].lr))
        self.update_rates()

    def step(self) -> None:
        """Advance to the next step."""
        count = innermost(self.count.value) + 1.0
        self.count.set(count)
        self._set(count)

    def _set(self, count: Tensor) -> None:
        for group in self.groups:
            group.lr.set(self.shape(count, innermost(group.initial_lr.value)))

    @property
    def lr(self) -> float:
        """The learning rate of the first group."""
        return float(self.groups[0].lr)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the step count, under ``step``."""
        return {"step": self.count.value.detach()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the step count from :meth:`state_dict`, and the rates for it."""
        super().load_state_dict(state)
        self.update_rates()

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the step count that :meth:`load_state_dict` sets, with its errors."""
        return fitted({"step": self.count}, state, "a schedule")

    def update_rates(self) -> None:
        """Set the learning rates for the current step."""
        self._set(innermost(self.count.value))


add_hints(Schedule, SCHEDULES)


def _factor(optimizer: Any, factor: Callable[[Tensor], Tensor]) -> Schedule:
    return Schedule(optimizer, lambda step, initial: initial * factor(step))


def _share(step: Tensor, steps: float) -> Tensor:
    """Return the completed fraction of ``steps``, from 0 to 1."""
    return ops.minimum(step / float(max(steps, 1e-12)), 1.0)


def _check_least(least: float, **numbers: float) -> None:
    for name, number in numbers.items():
        if not number >= least:
            raise ValueError(f"expected {name} >= {least}, got {number}")


def constant(optimizer: Any, factor: float = 1.0, steps: int = 0) -> Schedule:
    """Return a schedule with ``factor`` times the rate for ``steps``, as
    ``ConstantLR``.
    """
    return _factor(
        optimizer, lambda step: ops.where(step < float(steps), factor, 1.0 + 0.0 * step)
    )


def linear(
    optimizer: Any, steps: int, start: float = 1.0, end: float = 0.0
) -> Schedule:
    """Return a linear schedule from factor ``start`` to ``end``, as ``LinearLR``."""
    _check_least(1, steps=steps)
    return _factor(optimizer, lambda step: start + (end - start) * _share(step, steps))


def warmup(optimizer: Any, steps: int, start: float = 0.0) -> Schedule:
    """Return a linear schedule from ``start`` times the initial rate to all of it."""
    _check_least(0, steps=steps)
    return linear(optimizer, steps, start, 1.0) if steps else constant(optimizer)


def cosine(
    optimizer: Any, steps: int, warmup: int = 0, eta_min: float = 0.0
) -> Schedule:
    """Return a cosine schedule down to ``eta_min`` at ``steps``, as
    ``CosineAnnealingLR``.

    In the first ``warmup`` steps, of ``steps``, the rate rises linearly from 0. After
    ``steps`` it is constant.

    Raises:
        ValueError: all steps are for warmup.
    """
    _check_least(0, warmup=warmup)
    _check_least(warmup + 1, steps=steps)

    def shape(step: Tensor, initial: Tensor) -> Tensor:
        share = ops.clip((step - float(warmup)) / float(steps - warmup), 0.0, 1.0)
        rate = eta_min + (initial - eta_min) * (1.0 + ops.cos(share * math.pi)) * 0.5
        if not warmup:
            return rate
        return ops.where(step < float(warmup), initial * _share(step, warmup), rate)

    return Schedule(optimizer, shape)


def exponential(optimizer: Any, gamma: float) -> Schedule:
    """Return a schedule that multiplies by ``gamma`` each step, as
    ``ExponentialLR``.
    """
    _check_least(0, gamma=gamma)
    return _factor(optimizer, lambda step: ops.pow(gamma, step))


def step(optimizer: Any, step_size: int, gamma: float = 0.1) -> Schedule:
    """Return a schedule that multiplies by ``gamma`` every ``step_size``, as
    ``StepLR``.
    """
    _check_least(1, step_size=step_size)
    _check_least(0, gamma=gamma)
    return _factor(
        optimizer, lambda step: ops.pow(gamma, ops.floor(step / float(step_size)))
    )


def multistep(
    optimizer: Any, milestones: Sequence[int], gamma: float = 0.1
) -> Schedule:
    """Return a schedule that multiplies by ``gamma`` at milestones, as
    ``MultiStepLR``.
    """
    _check_least(0, gamma=gamma)

    def factor(step: Tensor) -> Tensor:
        passed = step * 0.0
        for milestone in milestones:
            passed = passed + ops.cast(step >= float(milestone), dtype=step.dtype)
        return ops.pow(gamma, passed)

    return _factor(optimizer, factor)


def noam(optimizer: Any, model_size: int, warmup: int) -> Schedule:
    """Return the rate factor ``model_size**-0.5 * min(n**-0.5, n * warmup**-1.5)``, n
    >= 1.

    That is the schedule of A. Vaswani et al., 2017, times the initial rate.
    """
    _check_least(1, model_size=model_size, warmup=warmup)

    def factor(step: Tensor) -> Tensor:
        n = step + 1.0
        rising = n * math.pow(warmup, -1.5)
        return ops.minimum(1.0 / ops.sqrt(n), rising) * math.pow(model_size, -0.5)

    return _factor(optimizer, factor)


def one_cycle(
    optimizer: Any,
    max_lr: float,
    steps: int,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Return a schedule up to ``max_lr`` and down again by cosines, as ``OneCycleLR``.

    It starts from ``max_lr / div_factor``, independently of the initial rate, rises for
    ``pct_start`` of the steps, and ends at the start divided by ``final_div_factor``.
    Momentum is constant (``cycle_momentum=False``).
    """
    _check_least(1, steps=steps)
    low, top = max_lr / div_factor, pct_start * steps - 1.0

    def between(start: float, end: float, share: Tensor) -> Tensor:
        bounded = ops.clip(share, 0.0, 1.0)
        return end + (start - end) * 0.5 * (1.0 + ops.cos(bounded * math.pi))

    def shape(step: Tensor, initial: Tensor) -> Tensor:
        rising = between(low, max_lr, step / max(top, 1e-12))
        falling = between(
            max_lr, low / final_div_factor, (step - top) / (steps - 1.0 - top)
        )
        return ops.where(step <= top, rising, falling)

    return Schedule(optimizer, shape)


def sequential(
    optimizer: Any, schedules: Sequence[Schedule], milestones: Sequence[int]
) -> Schedule:
    """Return a schedule that runs several in sequence, as ``SequentialLR``.

    The next one starts, from its step 0, at each of ``milestones``.

    Raises:
        ValueError: the number of milestones is not one less than that of schedules.
    """
    if len(milestones) != len(schedules) - 1:
        raise ValueError(
            f"expected {len(schedules) - 1} milestones for {len(schedules)} schedules, "
            f"got {len(milestones)}"
        )
    shapes = [schedule.shape for schedule in schedules]

    def shape(step: Tensor, initial: Tensor) -> Tensor:
        rate = shapes[0](step, initial)
        for part, milestone in zip(shapes[1:], milestones, strict=True):
            later = step >= float(milestone)
            inside = ops.maximum(step - float(milestone), 0.0)
            rate = ops.where(later, part(inside, initial), rate)
        return rate

    return Schedule(optimizer, shape)


def composed(optimizer: Any, schedules: Sequence[Schedule]) -> Schedule:
    """Return the product of the factors of several schedules, as
    ``ChainedScheduler``.
    """
    shapes = [schedule.shape for schedule in schedules]

    def shape(step: Tensor, initial: Tensor) -> Tensor:
        rate = initial
        for part in shapes:
            rate = rate * part(step, 1.0 + 0.0 * initial)
        return rate

    return Schedule(optimizer, shape)
