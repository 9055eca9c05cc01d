"""Compiled training steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from burn import ops
from burn.backend.autodiff import Gradients, backward, receiving_gradients
from burn.backend.base import Backend
from burn.box import Box, Deferred
from burn.distributed.communicator import Communicator
from burn.distributed.gradients import count_items, share_weights
from burn.distributed.reducer import Collector, Reducer
from burn.nn.autocast import Precision, autocast, widened
from burn.nn.modes import inference
from burn.nn.module import Module
from burn.optim.average import EMA
from burn.optim.groups import check_current
from burn.optim.scaler import GradScaler
from burn.optim.schedule import Schedule
from burn.optim.state import device_of
from burn.optim.zero import ZeroRedundancyOptimizer
from burn.plan.compiled import Compiled
from burn.plan.profile import Profile
from burn.plan.pytree import mapped
from burn.plan.recorder import UnplannableError
from burn.primitive import RECORDER
from burn.tensor import Tensor, from_numpy, innermost
from burn.train.checkpoint import load_checkpoint, save_checkpoint
from burn.train.options import AnyOptimizer, check_options
from burn.train.outputs import loss_of, without_gradient

P = ParamSpec("P")
R = TypeVar("R")


class Step(Generic[P, R]):
    """A function of a batch that trains a model: see :func:`step`.

    Calls return the output of the function, without history.
    """

    def __init__(
        self,
        function: Callable[P, R],
        model: Module,
        optimizer: AnyOptimizer,
        schedule: Schedule | None = None,
        *,
        accumulate: int = 1,
        ema: EMA | None = None,
        compiled: bool = True,
        communicator: Communicator | None = None,
        bucket_mb: float = 25.0,
        precision: Precision = "float32",
        scaler: GradScaler | None = None,
    ) -> None:
        check_options(optimizer, accumulate, precision)
        self.function, self.model, self.optimizer = function, model, optimizer
        self.schedule, self.ema, self.accumulate = schedule, ema, accumulate
        self.compiled, self.communicator = compiled, communicator
        self.precision = precision
        if scaler is None and precision == "fp16":
            scaler = GradScaler(model)
        self.scaler = scaler
        device = device_of(next(box for _, box in model.parameters()))
        self.reducer: Reducer | None = None
        if communicator is not None:
            share_weights(communicator, dict(model.boxes()))
            share_weights(communicator, {} if ema is None else ema.averages)
            self.reducer = Reducer(communicator, device, bucket_mb)
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.check_communicator(communicator)
        #: Paths of parameters that had no gradient when a batch was last recorded.
        self.untrained: list[str] = []
        #: The number of batches accumulated since the last update of weights.
        self.position = 0
        self.sums = {
            path: Box(_zeros(box)) for path, box in model.parameters() if accumulate > 1
        }
        #: The paths of the parameters whose gradients were accumulated.
        self.accumulated: set[str] = set()
        self._is_first = [from_numpy(np.array(flag), device) for flag in (False, True)]
        self.reset_plans()

    def reset_plans(self) -> None:
        """Discard the plans, which the next calls record again."""
        self._train = self._planned(self._trained)
        self._accumulate = self._planned(self._summed)
        self._compute = self._planned(self._computed)
        self._change_by_means = self._planned(self._changed_by_means)
        self._add_means = self._planned(self._added_means)
        self._apply = self._planned(self._applied)
        self._set_weights = self._planned(self._set_others)
        self._valid = self._planned(self._validated)

    def _planned(self, function: Callable[..., Any]) -> Any:
        # The first call runs the plan as well: a resumed run has the same bits.
        if not self.compiled:
            return function
        planned = Compiled(function, replayed=True)
        planned.name = getattr(self.function, "__qualname__", planned.name)
        return planned

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        output: R
        output, paths = self._run(args, kwargs)
        if self.accumulate > 1:
            self._count(paths)
        return output

    def _run(self, args: Any, kwargs: Any) -> tuple[Any, tuple[str, ...]]:
        """Return the output of a batch, and the paths with accumulated gradients."""
        is_first = self._is_first[self.position == 0]
        if self.communicator is None:
            if self.accumulate == 1:
                return self._train(args, kwargs), ()
            output, paths = self._accumulate(is_first, args, kwargs)
            return output, paths
        assert self.reducer is not None
        if RECORDER.get() is not None:
            raise UnplannableError("a step of several processes is in no other plan")
        self.reducer.begin(self._trainable())
        output, vectors = self._compute(args, kwargs)
        sums = self.reducer.sums(vectors)
        if self.accumulate == 1:
            self._share(*self._change_by_means(sums))
            return output, ()
        return output, self._add_means(is_first, sums)

    def _share(self, is_changed: bool, shards: list[Tensor]) -> None:
        """Exchange the weights that each process has updated, if they are sharded."""
        if not shards or not is_changed:
            return
        assert self.communicator is not None
        gather, to_array = self.communicator.all_gather, self.communicator.to_array
        tables = [gather(to_array(shard)) for shard in shards]
        to_tensor, device = self.communicator.to_tensor, shards[0].backend
        self._set_weights([to_tensor(table, device) for table in tables])

    def _set_others(self, tables: list[Tensor]) -> None:
        """Set the weights of other processes, and update averages."""
        assert isinstance(self.optimizer, ZeroRedundancyOptimizer)
        self.optimizer.set_weights(tables)
        if self.ema is not None:
            self.ema.update()

    def _count(self, paths: tuple[str, ...]) -> None:
        """Record the paths of a batch; update the weights after the last of a
        window.
        """
        self.accumulated.update(paths)
        self.position += 1
        if self.position == self.accumulate:
            # A plan is on the device of its tensors.
            self._share(*self._apply(self._is_first[0], *self._trained_paths()))
            self.position = 0
            self.accumulated.clear()

    def evaluate(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the output of the function in inference: no gradients, no state
        changes.
        """
        output: R = self._valid(args, kwargs)
        return output

    @property
    def notes(self) -> list[str]:
        """Messages about batches without a plan
        (:attr:`burn.plan.compiled.Compiled.notes`).
        """
        if not self.compiled:
            return []
        plans = [self._train, self._accumulate, self._compute]
        plans += [self._change_by_means, self._add_means, self._apply]
        plans.append(self._set_weights)
        return [note for each in plans for note in each.notes]

    def profile(self, *args: P.args, **kwargs: P.kwargs) -> Profile:
        """Return the time of each step of the plan of this batch.

        With ``accumulate`` or a communicator it is the plan of the gradients, without
        updates. Weights and the state of the optimizer do not change.

        Raises:
            ValueError: the step is not compiled, or this batch has no plan.
        """
        if not self.compiled:
            raise ValueError("expected a compiled step, got compiled=False")
        profile: Profile
        if self.communicator is not None:
            assert self.reducer is not None
            self.reducer.begin(self._trainable())
            profile = self._compute.profile(args, kwargs)
        elif self.accumulate > 1:
            is_first = self._is_first[self.position == 0]
            profile = self._accumulate.profile(is_first, args, kwargs)
        else:
            profile = self._train.profile(args, kwargs)
        return profile

    def _trained(self, args: Any, kwargs: Any) -> Any:
        output = self._forward(args, kwargs)
        self._change(self._backward(output))
        return _detached(output)

    def _forward(self, args: Any, kwargs: Any) -> Any:
        """Return the output of the function, converted to float32 if it is lower."""
        with autocast(self.precision):
            output = self.function(*args, **kwargs)
        return output if self.precision == "float32" else mapped(widened, output)

    def _backward(self, output: Any) -> Gradients:
        """Return the gradients of the loss, which are not finite on overflow."""
        value, scaler = loss_of(output), self.scaler
        scaled = value if scaler is None else scaler.scale(value)
        gradients = backward(scaled, retain_history=False)
        self.untrained = without_gradient(self.model, gradients)
        return gradients if scaler is None else scaler.unscale(gradients)

    def _change(self, gradients: Any) -> tuple[bool, list[Tensor]]:
        """Update weights, or return False if a scaler finds an overflow.

        The tensors are shards to be exchanged with other processes.
        """
        check_current(self.optimizer.groups, self.model)
        scaler, is_alone = self.scaler, self.communicator is None
        if scaler is not None and is_alone and self._device.is_asynchronous:
            with scaler.keeping_on_overflow(gradients):
                return True, self._update(gradients)
        if scaler is not None and not scaler.update(gradients):
            return False, []
        return True, self._update(gradients)

    @property
    def _device(self) -> Backend:
        return device_of(next(box for _, box in self.model.parameters()))

    def _update(self, gradients: Any) -> list[Tensor]:
        """Update weights, and return shards to be exchanged with other processes."""
        self.optimizer.step(gradients)
        if self.schedule is not None:
            self.schedule.step()
        if isinstance(self.optimizer, ZeroRedundancyOptimizer):
            return self.optimizer.shards()
        if self.ema is not None:
            self.ema.update()
        return []

    def _summed(self, is_first: Tensor, args: Any, kwargs: Any) -> Any:
        """Return the output, and the paths whose gradients were added to the means."""
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
        """Return the output, and this process's gradients to be summed over all.

        The update is a plan of its own, so that a plan that is recorded anew by one
        process does not repeat the communication.
        """
        assert self.reducer is not None
        output = self._forward(args, kwargs)
        items = count_items([args, kwargs])
        collector = self.reducer.collector(self._trainable(), items)
        gradients = self._collected(collector, output).by_name(self.model)
        return _detached(output), collector.finish(gradients)

    def _collected(self, collector: Collector, output: Any) -> Gradients:
        """Execute :meth:`_backward`, and pass gradients to ``collector`` as they
        complete.
        """
        scaler = self.scaler

        def receive(key: Any, gradient: Tensor) -> None:
            if scaler is not None:
                gradient = scaler.unscale({key: gradient})[key]
            collector.add(key, gradient)

        with receiving_gradients(receive):
            return self._backward(output)

    def _trainable(self) -> dict[str, Box]:
        return {path: box for path, box in self.model.parameters() if box.requires_grad}

    def _changed_by_means(self, sums: list[Tensor]) -> tuple[bool, list[Tensor]]:
        return self._change(self._means(sums))

    def _added_means(self, is_first: Tensor, sums: list[Tensor]) -> tuple[str, ...]:
        return self._add(self._means(sums), is_first)

    def _means(self, sums: list[Tensor]) -> dict[str, Tensor]:
        assert self.reducer is not None
        return self.reducer.average(sums, self._trainable())

    def _trained_paths(self) -> list[str]:
        """Return the paths with accumulated gradients that were not frozen since."""
        return [
            path
            for path, box in self.model.parameters()
            if path in self.accumulated and box.requires_grad
        ]

    def _applied(self, _: Tensor, *paths: str) -> tuple[bool, list[Tensor]]:
        return self._change({path: self.sums[path].value for path in paths})

    def _validated(self, args: Any, kwargs: Any) -> Any:
        with inference():
            return _detached(self._forward(args, kwargs))

    def save(self, path: str | Path) -> None:
        """Write a checkpoint: weights, optimizer, schedule, random keys, averages.

        It is one safetensors file, written atomically. Weights have the prefix
        ``model.``.
        """
        save_checkpoint(self, path)

    def load(self, path: str | Path) -> None:
        """Continue from a checkpoint, bitwise as without the interruption.

        On an error nothing is set.

        Raises:
            burn.record.RecordError: the file is damaged.
            ValueError: it is of another model, optimizer or schedule.
        """
        load_checkpoint(self, path)


def step(
    model: Module,
    optimizer: AnyOptimizer,
    schedule: Schedule | None = None,
    *,
    accumulate: int = 1,
    ema: EMA | None = None,
    compiled: bool = True,
    communicator: Communicator | None = None,
    bucket_mb: float = 25.0,
    precision: Precision = "float32",
    scaler: GradScaler | None = None,
) -> Callable[[Callable[P, R]], Step[P, R]]:
    """Decorate a function of a batch that returns a loss; calls train ``model``.

    The function returns the loss, or a tuple with a field ``loss`` such as
    :class:`~burn.train.Classified`. Each call computes it, its gradients and the
    changes by the optimizer, the schedule and ``ema``, as one plan for each shape of
    batch. With ``accumulate`` weights change after that many batches, by the mean of
    their gradients; the changes are then a plan of their own.

    With a ``communicator`` each process calls the step with its share of every batch.
    Weights start as those of rank 0 and change by the mean over all items, which are
    counted by the first axis of the first tensor; the loss is to be a mean over them.
    The output is that of the share. Gradients are summed in ``bucket_mb`` MB at a time.

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
            bucket_mb=bucket_mb,
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
