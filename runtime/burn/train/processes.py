"""Communication of a learner with the other processes of a training job."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from burn.distributed.communicator import Communicator
from burn.optim.zero import ZeroRedundancyOptimizer
from burn.train.step import Step


class Processes:
    """The processes of a step, possibly a single one.

    Every process calls the same methods in the same order.
    """

    def __init__(self, step: Step[..., Any]) -> None:
        if not isinstance(step, Step):
            raise TypeError(
                "expected a step that train.step returns (@train.step(model, opt)), "
                f"got {type(step).__name__}"
            )
        self._step = step
        self._communicator: Communicator | None = step.communicator

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and logs."""
        return self._communicator is None or self._communicator.rank == 0

    def any(self, flag: bool) -> bool:
        """Return whether ``flag`` is set in any process."""
        if self._communicator is None:
            return flag
        return bool(self._communicator.all_reduce(np.array([flag], np.int64))[0])

    def wait(self) -> None:
        """Wait until all processes have called this."""
        if self._communicator is not None:
            self._communicator.barrier()

    def collect_optimizer(self) -> None:
        """Collect the state of a sharded optimizer in the process that writes."""
        if isinstance(self._step.optimizer, ZeroRedundancyOptimizer):
            self._step.optimizer.consolidate_state_dict()

    def gather(self, value: Any) -> list[Any]:
        """Return the JSON values of all processes, by rank."""
        assert self._communicator is not None
        text = np.frombuffer(json.dumps(value).encode(), np.uint8)
        lengths = self._communicator.all_gather(np.array([text.size], np.int64))
        padded = np.zeros(int(lengths.max()), np.uint8)
        padded[: text.size] = text
        table = np.asarray(self._communicator.all_gather(padded))
        pairs = zip(table, np.ravel(lengths).tolist(), strict=True)
        return [json.loads(row[:length].tobytes()) for row, length in pairs]
