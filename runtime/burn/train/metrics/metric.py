"""The base class of metrics, and metrics of the loss and the optimizer."""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from burn.optim.optimizer import Optimizer
from burn.tensor import Tensor
from burn.train.outputs import describe_output, field_of, loss_of

Array = NDArray[Any]
#: Where a metric reads one of its inputs: a field of the output, or a function of it.
Source = str | Callable[[Any], Any]


@dataclass(frozen=True)
class Batch:
    """The properties of a batch for metrics, in addition to the output of the step.

    ``size`` is the number of samples, ``lr`` the learning rate of the first group.
    """

    size: int
    lr: float


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Metric(ABC):
    """A number for each epoch, accumulated over batches.

    A subclass returns its ``initial`` state, arrays by name, and changes ``state`` in
    ``update`` within an epoch. ``higher_is_better`` is None if neither is.
    ``inputs`` are the fields of the step's output that :meth:`inputs_of` returns.
    """

    #: The name in logs: ``accuracy`` becomes ``train/accuracy`` and ``valid/accuracy``.
    #: By default it is that of the class: ``max_error`` of ``MaxError``.
    name: str
    higher_is_better: ClassVar[bool | None] = None
    inputs: ClassVar[tuple[str, ...]] = ()
    _sources: Mapping[str, Source] = {}

    def __init__(self, name: str = "") -> None:
        own = getattr(type(self), "name", "") or _snake_case(type(self).__name__)
        self.name = name or own
        self.reset()

    def reads(self, **sources: Source) -> Self:
        """Read :attr:`inputs` from elsewhere in the output of a step; return ``self``.

        ``Accuracy().reads(logits="scores", targets="labels")`` reads fields of these
        names; a function gets the output: ``reads(logits=lambda output: output[1])``.

        Raises:
            TypeError: the metric has no such input.
        """
        others = sorted(sources.keys() - set(self.inputs))
        if others:
            kind, inputs = type(self).__name__, list(self.inputs)
            raise TypeError(f"{kind} reads {inputs}, got {others}")
        self._sources = {**self._sources, **sources}
        return self

    def inputs_of(self, output: Any) -> list[Tensor]:
        """Return :attr:`inputs` from the output of a step.

        Raises:
            TypeError: one of them is no tensor of the output.
        """
        sources = {name: self._sources.get(name, name) for name in self.inputs}
        values = [
            source(output) if callable(source) else field_of(output, source)
            for source in sources.values()
        ]
        if not all(isinstance(value, Tensor) for value in values):
            names = " and ".join(s for s in sources.values() if isinstance(s, str))
            options = ", ".join(f"{name}=..." for name in self.inputs)
            raise TypeError(
                f"{self.name}: expected a step that returns {names or 'tensors'}, got "
                f"{describe_output(output)}; {type(self).__name__}.reads({options}) "
                "sets other fields"
            )
        return values

    def reset(self) -> None:
        """Reset the state to that before the first batch."""
        self.state: dict[str, Array] = self.initial()

    @abstractmethod
    def initial(self) -> dict[str, Array]:
        """Return the state before the first batch."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state in JSON types, for checkpoints within an epoch."""
        return {name: array.tolist() for name, array in self.state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the state from :meth:`state_dict`."""
        initial = self.initial()
        if state.keys() != initial.keys():
            raise ValueError(
                f"metric {self.name}: expected a state of {sorted(initial)}, "
                f"got {sorted(state)}"
            )
        self.state = {k: np.array(state[k], a.dtype) for k, a in initial.items()}

    def merge(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Set the state to the combination of ``states``, those of all processes.

        They are results of :meth:`state_dict`. Arrays are summed; a metric with another
        kind of state overrides this.
        """
        initial = self.initial()
        totals = {
            name: sum(np.array(state[name], array.dtype) for state in states)
            for name, array in initial.items()
        }
        self.load_state_dict(totals)

    @abstractmethod
    def update(self, output: Any, batch: Batch) -> float | None:
        """Add a batch; return its own value, if it has one."""

    @abstractmethod
    def compute(self) -> float:
        """Return the value of all batches; NaN if there was none."""


class Mean(Metric):
    """A mean over samples, or whatever ``update`` counts."""

    def initial(self) -> dict[str, Array]:
        return {"sum": np.zeros(()), "count": np.zeros(())}

    def add(self, total: float, count: float) -> float:
        """Add ``count`` samples with the sum ``total``; return their mean."""
        self.state["sum"] = self.state["sum"] + total
        self.state["count"] = self.state["count"] + count
        return ratio(total, count)

    def compute(self) -> float:
        return ratio(float(self.state["sum"]), float(self.state["count"]))


class Loss(Mean):
    """The mean loss, each batch by its number of samples.

    ``Loss("penalty").reads(loss="penalty")`` is that of another scalar of the output.
    """

    higher_is_better: ClassVar[bool | None] = False
    inputs: ClassVar[tuple[str, ...]] = ("loss",)

    def __init__(self, name: str = "loss") -> None:
        super().__init__(name)

    def update(self, output: Any, batch: Batch) -> float:
        loss = self.inputs_of(output)[0] if self._sources else loss_of(output)
        return self.add(loss.item() * batch.size, batch.size)


class Perplexity(Loss):
    """The exponential of the mean loss, for cross entropies in nats."""

    def __init__(self, name: str = "perplexity") -> None:
        super().__init__(name)

    def update(self, output: Any, batch: Batch) -> float:
        return math.exp(super().update(output, batch))

    def compute(self) -> float:
        return math.exp(super().compute())


class LearningRate(Metric):
    """The learning rate of the first group after the last batch."""

    def __init__(self, name: str = "lr") -> None:
        super().__init__(name)

    def initial(self) -> dict[str, Array]:
        return {"lr": np.full((), np.nan)}

    def merge(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Keep the rate of the first of ``states``: it is the same in all."""
        self.load_state_dict(states[0])

    def update(self, output: Any, batch: Batch) -> float:
        self.state["lr"] = np.array(batch.lr)
        return batch.lr

    def compute(self) -> float:
        return float(self.state["lr"])


class GradientNorm(Mean):
    """The mean over batches of the norm of all gradients before it is clipped.

    It is ``grad_norm`` of an optimizer with ``clip_norm``, which can be ``math.inf``.
    Between updates of a step with ``accumulate`` it is that of the last one.

    Raises:
        ValueError: the optimizer has no ``clip_norm``.
    """

    def __init__(self, optimizer: Optimizer, name: str = "grad_norm") -> None:
        if optimizer.clip_norm is None:
            raise ValueError(
                "expected an optimizer with clip_norm, which computes the norm; "
                "clip_norm=math.inf does not change gradients"
            )
        self._optimizer = optimizer
        super().__init__(name)

    def update(self, output: Any, batch: Batch) -> float | None:
        norm = self._optimizer.grad_norm
        return None if norm is None else self.add(norm, 1)


class Throughput(Metric):
    """Samples a second, from the first call of an epoch's step to the last.

    The time of the first batch is not known and is left out, with its samples.
    """

    higher_is_better: ClassVar[bool | None] = True

    def __init__(self, name: str = "samples_per_second") -> None:
        super().__init__(name)

    def reset(self) -> None:
        super().reset()
        self._last: float | None = None

    def initial(self) -> dict[str, Array]:
        return {"samples": np.zeros(()), "seconds": np.zeros(())}

    def merge(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Sum the samples, in the time of the process that took the longest."""
        super().merge(states)
        self.state["seconds"] = np.array(max(state["seconds"] for state in states))

    def update(self, output: Any, batch: Batch) -> float | None:
        last, self._last = self._last, time.perf_counter()
        if last is None:
            return None
        seconds = self._last - last
        self.state["samples"] = self.state["samples"] + batch.size
        self.state["seconds"] = self.state["seconds"] + seconds
        return ratio(batch.size, seconds)

    def compute(self) -> float:
        return ratio(float(self.state["samples"]), float(self.state["seconds"]))


def ratio(a: float, b: float) -> float:
    """Return ``a / b``, NaN if ``b`` is 0."""
    return a / b if b else math.nan


def distinct(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics as a list.

    Raises:
        TypeError: one is no metric.
        ValueError: two have one name.
    """
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise TypeError(f"expected metrics as Accuracy(), got {metric!r}")
    names = [metric.name for metric in metrics]
    if len(set(names)) != len(names):
        raise ValueError(f"expected metrics of different names, got {names}")
    return list(metrics)
