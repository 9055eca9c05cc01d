"""A step of training as one plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from burn import ops, plan
from burn.box import Box, Deferred
from burn.distributed.communicator import Communicator
from burn.distributed.gradients import (
    average,
    count_items,
    flatten,
    share_weights,
    sum_vectors,
)
from burn.nn.modes import inference
from burn.nn.module import Module
from burn.optim.average import EMA
from burn.optim.combined import Combined
from burn.optim.optimizer import Optimizer, device_of, innermost
from burn.optim.schedule import Schedule
from burn.plan.pytree import mapped
from burn.tensor import Tensor, from_numpy
from burn.train.checkpoint import load_checkpoint, save_checkpoint
from burn.train.outputs import loss_of

P = ParamSpec("P")
R = TypeVar("R")


class Step(Generic[P, R]):
    """A function of a batch that trains: see :func:`step`.

    Calls return what the function does, without history.
    """

    def __init__(
        self,
        function: Callable[P, R],
        model: Module,
        optimizer: Optimizer | Combined,
        schedule: Schedule | None = None,
        *,
        accumulate: int = 1,
        ema: EMA | None = None,
        compiled: bool = True,
        communicator: Communicator | None = None,
    ) -> None:
        if accumulate < 1:
            raise ValueError(f"expected accumulate >= 1, got {accumulate}")
        self.function, self.model, self.optimizer = function, model, optimizer
        self.schedule, self.ema, self.accumulate = schedule, ema, accumulate
        self.compiled, self.communicator = compiled, communicator
        if communicator is not None:
            share_weights(communicator, dict(model.boxes()))
        #: How many batches were accumulated since the last change of weights.
        self.position = 0
        self.sums = {
            path: Box(_zeros(box)) for path, box in model.parameters() if accumulate > 1
        }
        device = device_of(next(box for _, box in model.parameters()))
        self._is_last = [from_numpy(np.array(flag), device) for flag in (False, True)]
        self._frozen: tuple[bool, ...] | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Plans anew if parameters were frozen or unfrozen since the last ones."""
        frozen = tuple(box.requires_grad for _, box in self.model.parameters())
        if frozen == self._frozen:
            return
        self._frozen = frozen
        function = self._trained if self.communicator is None else self._computed
        self._train: Any = self._planned(function)
        self._apply: Any = self._planned(self._applied)
        self._valid: Any = self._planned(self._validated)

    def _planned(self, function: Callable[..., Any]) -> Any:
        return plan.compile(function) if self.compiled else function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        self._prepare()
        position = self.position + 1
        is_last = self._is_last[position == self.accumulate]
        output: R
        if self.communicator is None:
            output = self._train(is_last, args, kwargs)
        else:
            output, vectors = self._train(args, kwargs)
            self._apply(is_last, sum_vectors(self.communicator, vectors))
        self.position = position % self.accumulate
        return output

    def evaluate(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function gives in inference: no gradients, nothing changes."""
        self._prepare()
        output: R = self._valid(args, kwargs)
        return output

    @property
    def notes(self) -> list[str]:
        """Why some batches have no plan (:attr:`burn.plan.compiled.Compiled.notes`)."""
        return list(self._train.notes) if self.compiled else []

    def _trained(self, is_last: Tensor, args: Any, kwargs: Any) -> Any:
        output = self.function(*args, **kwargs)
        gradients: Any = loss_of(output).backward()
        if self.accumulate == 1:
            self._change(gradients)
        else:
            self._accumulate(gradients.by_name(self.model), is_last)
        return _detached(output)

    def _computed(self, args: Any, kwargs: Any) -> tuple[Any, list[Tensor]]:
        """The output, and the gradients of this process to be summed over all.

        Communication is between two plans, so that a plan that is recorded anew by one
        process does not repeat it.
        """
        output = self.function(*args, **kwargs)
        gradients = loss_of(output).backward().by_name(self.model)
        unused = sorted(self._trainable().keys() - gradients.keys())
        if unused:
            raise ValueError(
                f"the loss does not depend on the parameters {unused}; with a "
                "communicator, freeze them"
            )
        inner = {path: innermost(grad) for path, grad in gradients.items()}
        vectors = flatten(inner, count_items([args, kwargs]))
        return _detached(output), vectors

    def _trainable(self) -> dict[str, Box]:
        return {path: box for path, box in self.model.parameters() if box.requires_grad}

    def _applied(self, is_last: Tensor, sums: list[Tensor]) -> None:
        means = average(sums, self._trainable())
        if self.accumulate == 1:
            self._change(means)
        else:
            self._accumulate(means, is_last)

    def _change(self, gradients: Any) -> None:
        self.optimizer.step(gradients)
        if self.schedule is not None:
            self.schedule.step()
        if self.ema is not None:
            self.ema.update()

    def _accumulate(self, gradients: dict[str, Tensor], is_last: Tensor) -> None:
        """Add to the means, and keep what they change if this is the last batch.

        Both kinds of batches are one plan, so that the kernels, and the bits, do not
        depend on how often weights were set before.
        """
        means = {}
        for path, gradient in gradients.items():
            share = innermost(gradient) * (1.0 / self.accumulate)
            means[path] = innermost(self.sums[path].value) + share
        boxes = self._changed()
        before = [innermost(box.value) for box in boxes]
        self._change(means)
        for box, value in zip(boxes, before, strict=True):
            box.set(ops.where(is_last, innermost(box.value), value))
        for path, mean in means.items():
            self.sums[path].set(ops.where(is_last, mean * 0.0, mean))

    def _changed(self) -> list[Box]:
        """Every box that a change of weights sets."""
        boxes: list[Box] = [box for _, box in self.model.parameters()]
        boxes += self.optimizer.boxes().values()
        if self.schedule is not None:
            boxes.append(self.schedule.count)
        if self.ema is not None:
            boxes += [self.ema.count, *self.ema.averages.values()]
        return boxes

    def _validated(self, args: Any, kwargs: Any) -> Any:
        with inference():
            return _detached(self.function(*args, **kwargs))

    def save(self, path: str | Path) -> None:
        """Write a checkpoint: weights, optimiser, schedule, random keys, averages.

        It is one safetensors file, the old one or the new one at any time. Weights have
        the prefix ``model.``.
        """
        save_checkpoint(self, path)

    def load(self, path: str | Path) -> None:
        """Go on from a checkpoint, to the same bits as without the interruption.

        Raises:
            burn.record.RecordError: the file is damaged.
            ValueError: it is of another model, optimiser or schedule.
        """
        load_checkpoint(self, path)


def step(
    model: Module,
    optimizer: Optimizer | Combined,
    schedule: Schedule | None = None,
    *,
    accumulate: int = 1,
    ema: EMA | None = None,
    compiled: bool = True,
    communicator: Communicator | None = None,
) -> Callable[[Callable[P, R]], Step[P, R]]:
    """A decorator for functions of a batch that return a loss: calls train ``model``.

    The function returns the loss, or a tuple with a field ``loss`` such as
    :class:`~burn.train.Classified`. Each call computes it, its gradients and the
    changes by the optimiser, the schedule and ``ema``, as one plan for each shape of
    batch. With ``accumulate`` weights change after that many batches, by the mean of
    their gradients. Freezing parameters records plans anew.

    With a ``communicator`` each process calls the step with its share of every batch.
    Weights start as those of rank 0 and change by the mean over all items, which are
    counted by the first axis of the first tensor; the loss is to be a mean over them.
    The output is that of the share.
    """

    def decorate(function: Callable[P, R]) -> Step[P, R]:
        return Step(
            *(function, model, optimizer, schedule),
            accumulate=accumulate,
            ema=ema,
            compiled=compiled,
            communicator=communicator,
        )

    return decorate


def _zeros(box: Box) -> Deferred:
    def make() -> Tensor:
        return from_numpy(np.zeros(box.shape, box.dtype), device_of(box))

    return Deferred(box.shape, box.dtype, make)


def _detached(output: Any) -> Any:
    return mapped(lambda x: innermost(x) if type(x) is Tensor else x, output)
