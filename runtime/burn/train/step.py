"""A step of training as one plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from burn import ops
from burn.backend.autodiff import Gradients
from burn.box import Box, Deferred
from burn.distributed.communicator import Communicator
from burn.distributed.gradients import (
    average,
    count_items,
    flatten,
    share_weights,
    sum_vectors,
)
from burn.nn.autocast import Precision, autocast, check_precision, widened
from burn.nn.modes import inference
from burn.nn.module import Module
from burn.optim.average import EMA
from burn.optim.combined import Combined
from burn.optim.optimizer import Optimizer
from burn.optim.scaler import GradScaler
from burn.optim.schedule import Schedule
from burn.optim.state import device_of, innermost
from burn.plan.compiled import Compiled
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
        precision: Precision = "float32",
        scaler: GradScaler | None = None,
    ) -> None:
        if accumulate < 1:
            raise ValueError(f"expected accumulate >= 1, got {accumulate}")
        self.function, self.model, self.optimizer = function, model, optimizer
        self.schedule, self.ema, self.accumulate = schedule, ema, accumulate
        self.compiled, self.communicator = compiled, communicator
        check_precision(precision)
        self.precision = precision
        if scaler is None and precision == "fp16":
            scaler = GradScaler(model)
        self.scaler = scaler
        if communicator is not None:
            share_weights(communicator, dict(model.boxes()))
        #: How many batches were accumulated since the last change of weights.
        self.position = 0
        self.sums = {
            path: Box(_zeros(box)) for path, box in model.parameters() if accumulate > 1
        }
        #: The paths of the parameters whose gradients were accumulated.
        self.accumulated: set[str] = set()
        device = device_of(next(box for _, box in model.parameters()))
        self._is_first = [from_numpy(np.array(flag), device) for flag in (False, True)]
        self.reset_plans()

    def reset_plans(self) -> None:
        """Forget the plans, which are recorded anew by the next calls."""
        self._train = self._planned(self._trained)
        self._accumulate = self._planned(self._summed)
        self._compute = self._planned(self._computed)
        self._change_by_means = self._planned(self._changed_by_means)
        self._add_means = self._planned(self._added_means)
        self._apply = self._planned(self._applied)
        self._valid = self._planned(self._validated)

    def _planned(self, function: Callable[..., Any]) -> Any:
        # The first call runs the plan as well: a resumed run has the same bits.
        return Compiled(function, replayed=True) if self.compiled else function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        output: R
        output, paths = self._run(args, kwargs)
        if self.accumulate > 1:
            self._count(paths)
        return output

    def _run(self, args: Any, kwargs: Any) -> tuple[Any, tuple[str, ...]]:
        """The output of a batch, and the paths whose gradients were accumulated."""
        is_first = self._is_first[self.position == 0]
        if self.communicator is None:
            if self.accumulate == 1:
                return self._train(args, kwargs), ()
            output, paths = self._accumulate(is_first, args, kwargs)
            return output, paths
        output, vectors = self._compute(args, kwargs)
        sums = sum_vectors(self.communicator, vectors)
        if self.accumulate == 1:
            self._change_by_means(sums)
            return output, ()
        return output, self._add_means(is_first, sums)

    def _count(self, paths: tuple[str, ...]) -> None:
        """Note the paths of a batch; change the weights after the last of a window."""
        self.accumulated.update(paths)
        self.position += 1
        if self.position == self.accumulate:
            self._apply(*self._trained_paths())
            self.position = 0
            self.accumulated.clear()

    def evaluate(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function gives in inference: no gradients, nothing changes."""
        output: R = self._valid(args, kwargs)
        return output

    @property
    def notes(self) -> list[str]:
        """Why some batches have no plan (:attr:`burn.plan.compiled.Compiled.notes`)."""
        if not self.compiled:
            return []
        plans = [self._train, self._accumulate, self._compute]
        plans += [self._change_by_means, self._add_means, self._apply]
        return [note for each in plans for note in each.notes]

    def _trained(self, args: Any, kwargs: Any) -> Any:
        output = self._forward(args, kwargs)
        self._change(self._backward(output))
        return _detached(output)

    def _forward(self, args: Any, kwargs: Any) -> Any:
        """Return what the function returns, in float32 if it is of less."""
        with autocast(self.precision):
            output = self.function(*args, **kwargs)
        return output if self.precision == "float32" else mapped(widened, output)

    def _backward(self, output: Any) -> Gradients:
        """Return the gradients of the loss, which are not finite on overflow."""
        value = loss_of(output)
        if self.scaler is None:
            return value.backward()
        return self.scaler.unscale(self.scaler.scale(value).backward())

    def _change(self, gradients: Any) -> None:
        """Update weights, unless a scaler finds an overflow."""
        if self.scaler is not None and not self.scaler.update(gradients):
            return
        self.optimizer.step(gradients)
        if self.schedule is not None:
            self.schedule.step()
        if self.ema is not None:
            self.ema.update()

    def _summed(self, is_first: Tensor, args: Any, kwargs: Any) -> Any:
        """The output, and the paths whose gradients were added to the means."""
        output = self._forward(args, kwargs)
        gradients = self._backward(output).by_name(self.model)
        return _detached(output), self._add(gradients, is_first)

    def _add(self, gradients: dict[str, Tensor], is_first: Tensor) -> tuple[str, ...]:
        for path, gradient in gradients.items():
            share = innermost(gradient) * (1.0 / self.accumulate)
            total = innermost(self.sums[path].value) + share
            self.sums[path].set(ops.where(is_first, share, total))
        return tuple(gradients)

    def _computed(self, args: Any, kwargs: Any) -> tuple[Any, list[Tensor]]:
        """The output, and the gradients of this process to be summed over all.

        Communication is between two plans, so that a plan that is recorded anew by one
        process does not repeat it.
        """
        output = self._forward(args, kwargs)
        gradients = self._backward(output).by_name(self.model)
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

    def _changed_by_means(self, vectors: list[Tensor]) -> None:
        self._change(average(vectors, self._trainable()))

    def _added_means(self, is_first: Tensor, vectors: list[Tensor]) -> tuple[str, ...]:
        return self._add(average(vectors, self._trainable()), is_first)

    def _trained_paths(self) -> list[str]:
        """The paths with accumulated gradients that were not frozen since."""
        return [
            path
            for path, box in self.model.parameters()
            if path in self.accumulated and box.requires_grad
        ]

    def _applied(self, *paths: str) -> None:
        self._change({path: self.sums[path].value for path in paths})

    def _validated(self, args: Any, kwargs: Any) -> Any:
        with inference():
            return _detached(self._forward(args, kwargs))

    def save(self, path: str | Path) -> None:
        """Write a checkpoint: weights, optimiser, schedule, random keys, averages.

        It is one safetensors file, the old one or the new one at any time. Weights have
        the prefix ``model.``.
        """
        save_checkpoint(self, path)

    def load(self, path: str | Path) -> None:
        """Go on from a checkpoint, to the same bits as without the interruption.

        On an error nothing is set.

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
    precision: Precision = "float32",
    scaler: GradScaler | None = None,
) -> Callable[[Callable[P, R]], Step[P, R]]:
    """A decorator for functions of a batch that return a loss: calls train ``model``.

    The function returns the loss, or a tuple with a field ``loss`` such as
    :class:`~burn.train.Classified`. Each call computes it, its gradients and the
    changes by the optimiser, the schedule and ``ema``, as one plan for each shape of
    batch. With ``accumulate`` weights change after that many batches, by the mean of
    their gradients; the changes are then a plan of their own.

    With a ``communicator`` each process calls the step with its share of every batch.
    Weights start as those of rank 0 and change by the mean over all items, which are
    counted by the first axis of the first tensor; the loss is to be a mean over them.
    The output is that of the share.

    With ``precision`` ``"bf16"`` or ``"fp16"`` the function runs under
    :func:`burn.nn.autocast`; weights, their gradients and the output are float32. The
    loss is multiplied by the scale of ``scaler``, of a new one with ``"fp16"``; a step
    whose gradients overflow changes nothing but the scale.
    """

    def decorate(function: Callable[P, R]) -> Step[P, R]:
        return Step(
            *(function, model, optimizer, schedule),
            accumulate=accumulate,
            ema=ema,
            compiled=compiled,
            communicator=communicator,
            precision=precision,
            scaler=scaler,
        )

    return decorate


def _zeros(box: Box) -> Deferred:
    def make() -> Tensor:
        return from_numpy(np.zeros(box.shape, box.dtype), device_of(box))

    return Deferred(box.shape, box.dtype, make)


def _detached(output: Any) -> Any:
    return mapped(lambda x: innermost(x) if type(x) is Tensor else x, output)
