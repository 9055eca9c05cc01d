"""The training loop: epochs, metrics, checkpoints and logs in a folder."""

from __future__ import annotations

import json
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burn.nn.module import Module
from burn.record.atomic import atomic_write
from burn.train.anomaly import check_loss
from burn.train.batches import arguments_of, sample_count
from burn.train.checkpoint import load_checkpoint, save_checkpoint
from burn.train.loggers import FileLogger, Logger, Run
from burn.train.metrics import Batch, Loss, Metric
from burn.train.metrics.metric import distinct
from burn.train.outputs import describe_untrained
from burn.train.processes import Processes
from burn.train.progress import create_progress_logger
from burn.train.step import Step
from burn.train.strategy import (
    KeepLast,
    Mode,
    Patience,
    Strategy,
    check_keys,
    describe_overflow,
    last_finite_epoch,
)
from burn.train.summary import Summary, summarize_history

_CHECKPOINT = re.compile(r"checkpoint-([0-9]{1,9})\.safetensors")


class _InterruptedError(Exception):
    """Training was interrupted after a batch."""


@dataclass
class Result:
    """The trained model for inference, and the values of each epoch."""

    model: Module
    history: list[dict[str, float]] = field(default_factory=list)

    def summary(self) -> Summary:
        """Return the least and largest value of each metric with their epochs."""
        return summarize_history(self.history)


class Learner:
    """Trains with a :class:`~burn.train.Step`: ``Learner(folder, step).fit(batches)``.

    The folder gets ``checkpoint/checkpoint-<epoch>.safetensors``, the values of batches
    in ``train/epoch-<n>/<metric>.log`` and ``valid/...``, and those of epochs in
    ``epochs.jsonl``. Ctrl-C ends training after the batch and writes
    ``checkpoint/interrupted.safetensors``, from which ``resume`` goes on within the
    epoch. If the batches for training have no ``position``, which a
    :class:`burn.data.Loader` has, it goes on from the last whole epoch.

    If the step has a ``communicator``, every process makes a learner with the same
    arguments, and its share of the batches. Values of epochs are those of all
    processes. Rank 0 writes the folder, which all processes read when they resume, and
    logs the batches of its own share.

    Args:
        folder: where artifacts go; it is created.
        step: the step, with model, optimizer and schedule.
        metrics: see :mod:`burn.train.metrics`; names differ.
        checkpoints: which to keep besides the newest.
        stop: ends training early.
        loggers: get the values besides the files of the folder.
        detect_anomaly: whether a loss that is NaN or infinite ends training at its
            batch, with a ``FloatingPointError``. Otherwise a warning says so once.
        progress: whether to print a line for each epoch and a summary, with bars on a
            terminal where rich is installed. A logger such as
            :class:`~burn.train.Dashboard` replaces it.
    """

    def __init__(
        self,
        folder: str | Path,
        step: Step[..., Any],
        *,
        metrics: Sequence[Metric] | None = None,
        checkpoints: Strategy | None = None,
        stop: Patience | None = None,
        loggers: Sequence[Logger] = (),
        detect_anomaly: bool = False,
        progress: bool = True,
    ) -> None:
        self.folder, self.step = Path(folder), step
        self.detect_anomaly = detect_anomaly
        self._processes = Processes(step)
        self.metrics = distinct([Loss()] if metrics is None else metrics)
        self.checkpoints = checkpoints or KeepLast(1)
        self.stop = stop
        self.loggers: list[Logger] = []
        if self._processes.is_first:
            is_shown = any(logger.shows_progress for logger in loggers)
            own = [create_progress_logger()] if progress and not is_shown else []
            self.loggers = [FileLogger(), *own, *loggers]
        self.history: list[dict[str, float]] = []
        self._interrupted = False
        self._resumed_from: Path | None = None
        #: Progress within the epoch, as in the checkpoint of an interruption:
        #: ``batches`` of the train split (with ``metrics``), or its final ``values``.
        self._partial: dict[str, Any] = {}

    def fit(
        self,
        train: Iterable[Any],
        valid: Iterable[Any] | None = None,
        *,
        epochs: int,
        resume: bool = False,
    ) -> Result:
        """Train up to epoch ``epochs``, and evaluate ``valid`` after each.

        Batches are tuples of arguments of the step, dicts of them, or one argument;
        arrays become tensors, also those of PyTorch on the CPU. ``train`` is iterated
        once an epoch. If it has ``state_dict`` and ``load_state_dict``, checkpoints
        keep its position.

        Raises:
            ValueError: the folder has checkpoints and ``resume`` is False, a strategy
                reads a value that is not computed, or no batch came.
            KeyboardInterrupt: Ctrl-C was pressed.
            FloatingPointError: a loss is not finite, and ``detect_anomaly`` is set.
        """
        self._begin(train, resume)
        splits = ["train"] if valid is None else ["train", "valid"]
        keys = [f"{split}/{each.name}" for split in splits for each in self.metrics]
        check_keys(keys, (self.checkpoints, self.stop))
        run = self._describe_run(epochs, {"train": train, "valid": valid})
        with self._interruptible(), self._logging(run):
            while len(self.history) < epochs and not self._is_over():
                try:
                    values = self._train_and_validate(train, valid)
                except _InterruptedError:
                    self._save_interrupted(train)
                    raise KeyboardInterrupt from None
                self.history.append(values)
                self._save_epoch(train)
                for logger in self.loggers:
                    logger.log_epoch(len(self.history), values)
            if len(self.history) < epochs and self.stop is not None:
                self._log_message(f"ended early: {self.stop.reason(self.history)}")
        return Result(self.step.model.valid(), list(self.history))

    def evaluate(self, batches: Iterable[Any]) -> dict[str, float]:
        """Return the metrics of ``batches``, as those of :meth:`fit`, without logs."""
        self._reset_metrics({})
        for number, batch in enumerate(batches, 1):
            self._run_batch(self.step.evaluate, batch, ("test", 0, number))
        self._merge_metrics()
        return {metric.name: metric.compute() for metric in self.metrics}

    def _train_and_validate(
        self, train: Iterable[Any], valid: Iterable[Any] | None
    ) -> dict[str, float]:
        """Return the values of one epoch, without the parts that were resumed.

        Raises:
            _InterruptedError: Ctrl-C was pressed; ``_partial`` has the finished part.
        """
        values: dict[str, float] | None = self._partial.get("values")
        if values is None:
            values = self._run_split("train", train)
        if valid is not None:
            self._partial = {"values": values}
            values = values | self._run_split("valid", valid)
        self._partial = {}
        return values

    def _begin(self, train: Any, resume: bool) -> None:
        """Create the folder, or go on from its newest checkpoint."""
        (self.folder / "checkpoint").mkdir(parents=True, exist_ok=True)
        self.history, self._interrupted, self._partial = [], False, {}
        newest = self._resumed_from = self._newest()
        self._processes.wait()  # no process writes before all have looked
        if newest is None:
            return
        if not resume:
            raise ValueError(
                f"{self.folder} has checkpoints of a run: pass resume=True to go on "
                "from the newest, or take another folder"
            )
        metadata = load_checkpoint(self.step, newest)
        state = json.loads(metadata["learner"])
        self.history = state["history"]
        self._partial = state.get("partial", {})
        if state["loader"] is not None:
            train.load_state_dict(state["loader"])

    def _describe_run(self, epochs: int, splits: Mapping[str, Any]) -> Run:
        """Return the description of a run for its loggers."""
        return Run(
            folder=self.folder,
            epochs=epochs,
            history=list(self.history),
            batches_done=self._partial.get("batches", 0),
            batches={
                name: len(batches) if isinstance(batches, Sized) else None
                for name, batches in splits.items()
                if batches is not None
            },
            resumed_from=self._resumed_from,
        )

    def _newest(self) -> Path | None:
        """Return the checkpoint that was written last, None if there is none."""
        if self._interrupted_path.exists():
            return self._interrupted_path
        stored = self.stored()
        return stored[max(stored)] if stored else None

    def stored(self) -> dict[int, Path]:
        """Return the checkpoints in the folder, by epoch."""
        paths = (self.folder / "checkpoint").glob("checkpoint-*.safetensors")
        matches = ((_CHECKPOINT.fullmatch(path.name), path) for path in paths)
        return {int(match[1]): path for match, path in matches if match}

    def _is_over(self) -> bool:
        history = self.history
        return self.stop is not None and self.stop.is_over(history, self._modes())

    def _modes(self) -> dict[str, Mode]:
        return {
            f"{split}/{metric.name}": "max" if metric.higher_is_better else "min"
            for split in ("train", "valid")
            for metric in self.metrics
            if metric.higher_is_better is not None
        }

    def _run_split(self, split: str, batches: Iterable[Any]) -> dict[str, float]:
        """Run an epoch of a split, and return the values of all its batches by key."""
        is_training = split == "train"
        call = self.step if is_training else self.step.evaluate
        done = self._partial.get("batches", 0) if is_training else 0
        self._reset_metrics(self._partial.get("metrics", {}) if is_training else {})
        epoch, count = len(self.history) + 1, done
        for count, batch in enumerate(batches, done + 1):
            context, values = self._run_batch(call, batch, (split, epoch, count))
            for logger in self.loggers:
                logger.log_batch(split, epoch, count, context, values)
            if is_training:  # each process has as many batches of this split
                self._partial = {"batches": count}
                self._interrupted = self._processes.any(self._interrupted)
            if self._interrupted:
                break
        if not is_training:
            self._interrupted = self._processes.any(self._interrupted)
        if not count:
            once = "" if epoch == 1 else "; a generator yields those of one epoch"
            raise ValueError(
                f"expected at least one {split} batch in epoch {epoch}, got none{once}"
            )
        for logger in self.loggers:
            logger.log_split(split, epoch)
        self._merge_metrics()
        if self._interrupted:
            raise _InterruptedError
        return {f"{split}/{metric.name}": metric.compute() for metric in self.metrics}

    def _reset_metrics(self, states: dict[str, Any]) -> None:
        """Begin an epoch of the metrics, or go on with ``states`` by name.

        Those are of all processes: the first one goes on with them.
        """
        for metric in self.metrics:
            metric.reset()
            if metric.name in states and self._processes.is_first:
                metric.load_state_dict(states[metric.name])

    def _merge_metrics(self) -> None:
        """Merge the metrics of all processes."""
        if self.step.communicator is None:
            return
        states = self._processes.gather([m.state_dict() for m in self.metrics])
        for metric, *each in zip(self.metrics, *states, strict=True):
            metric.merge(each)

    def _run_batch(
        self, call: Callable[..., Any], batch: Any, position: tuple[str, int, int]
    ) -> tuple[Batch, dict[str, float]]:
        """Return the metrics of a batch; ``position`` is its split, epoch, number."""
        args, kwargs = arguments_of(batch)
        size = sample_count((args, kwargs), position)
        output = call(*args, **kwargs)
        if position == ("train", 1, 1) and self.step.untrained:
            message = describe_untrained(self.step.untrained)
            warnings.warn(message, UserWarning, stacklevel=5)
        if self.detect_anomaly and position[0] == "train":
            check_loss(output, (args, kwargs), *position[1:])
        context = Batch(size, self._lr())
        updates = {each.name: each.update(output, context) for each in self.metrics}
        return context, {k: value for k, value in updates.items() if value is not None}

    def _log_message(self, message: str) -> None:
        for logger in self.loggers:
            logger.log_message(message)

    def _lr(self) -> float:
        return float(self.step.optimizer.groups[0].lr)

    def _save_epoch(self, train: Any) -> None:
        """Write the checkpoint of the epoch, then remove those that are not kept."""
        self._processes.collect_optimizer()
        if self._processes.is_first:
            self._write_epoch(train)
        self._processes.wait()

    def _write_epoch(self, train: Any) -> None:
        epoch = len(self.history)
        kept_epochs = self.checkpoints.kept(self.history, self._modes()) | {epoch}
        losses = [each.name for each in self.metrics if type(each) is Loss]
        finite = last_finite_epoch(self.history, losses)
        kept_epochs.add(finite)
        if finite + 1 == epoch:
            message = describe_overflow(epoch, finite)
            self._log_message(message)
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        path = self.folder / "checkpoint" / f"checkpoint-{epoch}.safetensors"
        self._write(path, train, {})
        self._interrupted_path.unlink(missing_ok=True)
        for number, old in self.stored().items():
            if number not in kept_epochs:
                old.unlink()
        numbers = ", ".join(map(str, sorted(self.stored())))
        self._log_message(f"epoch {epoch}: kept checkpoints of epochs {numbers}")
        rows = ({"epoch": i, **values} for i, values in enumerate(self.history, 1))
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        atomic_write(self.folder / "epochs.jsonl", lines.encode())

    @property
    def _interrupted_path(self) -> Path:
        """The path of the checkpoint within an epoch; if it exists it is the newest."""
        return self.folder / "checkpoint" / "interrupted.safetensors"

    def _write(self, path: Path, train: Any, partial: dict[str, Any]) -> None:
        loader = train.state_dict() if hasattr(train, "state_dict") else None
        state = {"history": self.history, "loader": loader, "partial": partial}
        save_checkpoint(self.step, path, metadata={"learner": json.dumps(state)})

    def _save_interrupted(self, train: Any) -> None:
        """Write a checkpoint within an epoch, if ``train`` can go on there."""
        if hasattr(train, "position"):
            partial = dict(self._partial)
            if "batches" in partial:
                metrics = {metric.name: metric.state_dict() for metric in self.metrics}
                partial["metrics"] = metrics
            self._processes.collect_optimizer()
            if self._processes.is_first:
                self._write(self._interrupted_path, train, partial)
                self._log_message(f"interrupted: wrote {self._interrupted_path.name}")
            self._processes.wait()

    @contextmanager
    def _logging(self, run: Run) -> Iterator[None]:
        """Start the loggers, and close them at the end, also after an error."""
        with ExitStack() as stack:
            for logger in self.loggers:
                stack.callback(logger.close)
                logger.begin(run)
            yield

    def interrupt(self) -> None:
        """End training after the current batch; ``fit`` raises KeyboardInterrupt."""
        self._interrupted = True

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Delay the first Ctrl-C until the end of the batch, so that state is
        consistent.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: Any) -> None:
            if self._interrupted:
                raise KeyboardInterrupt
            self.interrupt()

        before = signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
