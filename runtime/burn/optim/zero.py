"""Optimizer state that is sharded over processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from burn import ops
from burn.backend.base import Backend
from burn.box import Box, Parameter
from burn.distributed.communicator import Communicator
from burn.dtypes import DType
from burn.optim.combined import Combined
from burn.optim.groups import Group
from burn.optim.optimizer import Optimizer
from burn.optim.state import Stateful, Values, device_of
from burn.tensor import Tensor, from_numpy, innermost


class ZeroRedundancyOptimizer(Stateful):
    """An optimizer whose state is sharded over processes (ZeRO, stage 1).

    Each parameter belongs to one process, which stores its state and computes its
    update; the others receive the new weights. The results are those of the wrapped
    optimizer. Use it with :func:`burn.train.step` and the same communicator::

        opt = optim.ZeroRedundancyOptimizer(optim.AdamW(model), comm)

    Before ``state_dict``, and so before a checkpoint is saved, every process calls
    :meth:`consolidate_state_dict`, as in PyTorch. The state is then complete, and can
    be loaded with any number of processes, or without this class.
    """

    def __init__(
        self, optimizer: Optimizer | Combined, communicator: Communicator
    ) -> None:
        self.optimizer, self.communicator = optimizer, communicator
        self._parts: tuple[Optimizer, ...] = (
            optimizer.optimizers if isinstance(optimizer, Combined) else (optimizer,)
        )
        self._boxes = dict(self.parameters())
        #: The rank that each parameter belongs to, by path.
        self.owners = divide(self._boxes, communicator.size)
        self._consolidated: tuple[list[float], dict[str, Tensor]] | None = None

    def check_communicator(self, communicator: Communicator | None) -> None:
        """Check that a training step uses the same communicator as this optimizer.

        Raises:
            ValueError: ``communicator`` is another one, or None.
        """
        if communicator is not self.communicator:
            raise ValueError(
                "expected the communicator of the ZeroRedundancyOptimizer, "
                f"got communicator={communicator}"
            )

    @property
    def groups(self) -> list[Group]:
        """The groups of the optimizer."""
        return self.optimizer.groups

    def parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter) for the parameters of all processes."""
        for part in self._parts:
            yield from part.parameters()

    def step(self, gradients: Mapping[Any, Tensor]) -> None:
        """Update the parameters of this process; the training step shares them.

        ``gradients`` are of all parameters and equal in all processes: the norm for
        clipping is that of all gradients.
        """
        for part in self._parts:
            grads = part.prepared(gradients)
            part.update_parameters({p: g for p, g in grads.items() if self._owns(p)})

    def shards(self) -> list[Tensor]:
        """Return the weights of this process as one vector for each dtype.

        Vectors of all processes have the same length, padded with 0.
        """
        return [self._shard(dtype) for dtype in self._dtypes()]

    def _shard(self, dtype: DType) -> Tensor:
        shares = self._shares(dtype)
        vectors = [
            ops.reshape(innermost(self._boxes[path].value), (-1,))
            for path in shares[self.communicator.rank]
        ]
        length = max(map(self._count, shares))
        missing = length - self._count(shares[self.communicator.rank])
        if missing:
            device = device_of(next(iter(self._boxes.values())))
            vectors.append(from_numpy(np.zeros(missing, dtype), device))
        return ops.concat(vectors, axis=0)

    def set_weights(self, gathered: Sequence[Tensor]) -> None:
        """Set the weights of other processes from the gathered :meth:`shards` [size,
        N].
        """
        for dtype, table in zip(self._dtypes(), gathered, strict=True):
            for rank, paths in enumerate(self._shares(dtype)):
                if rank == self.communicator.rank:
                    continue
                start = 0
                for path in paths:
                    box = self._boxes[path]
                    end = start + self._count([path])
                    box.set(ops.reshape(table[rank, start:end], box.shape))
                    start = end

    def to(self, backend: Backend) -> None:
        """Move the state to the device of ``backend``."""
        self.optimizer.to(backend)

    def boxes(self) -> dict[str, Box]:
        """Return the state that a step changes, except parameters, by state key."""
        return self.optimizer.boxes()

    def consolidate_state_dict(self) -> None:
        """Collect the state in host memory; all processes must call this."""
        boxes = self.optimizer.boxes()
        owners = {key: self._owner(key) for key in boxes}
        is_set = [
            boxes[key].is_set and owner in (None, self.communicator.rank)
            for key, owner in owners.items()
        ]
        counts = self.communicator.all_reduce(np.array(is_set, np.int64))
        state = {}
        for key, count in zip(boxes, counts.tolist(), strict=True):
            if count:
                state[key] = from_numpy(self._collected(boxes[key], owners[key]))
        self._consolidated = (self._steps(), state)

    def _collected(self, box: Box, owner: int | None) -> Any:
        """Return the value of a box of the process ``owner``, or of all processes."""
        if owner is None:
            return box.numpy()
        is_ours = owner == self.communicator.rank
        array = box.numpy() if is_ours else np.zeros(box.shape, box.dtype)
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        raw = self.communicator.broadcast(flat, owner)
        return raw.view(array.dtype).reshape(array.shape)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the whole state, in the format of the wrapped optimizer.

        Raises:
            RuntimeError: the state was not consolidated since the last step.
        """
        if self._consolidated is None or self._consolidated[0] != self._steps():
            raise RuntimeError(
                "the state of the optimizer is divided among "
                f"{self.communicator.size} processes: call consolidate_state_dict() "
                "in all of them before state_dict() or save()"
            )
        return dict(self._consolidated[1])

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""
        self._consolidated = None
        values = self.optimizer.fitted_state(state)
        ours = (None, self.communicator.rank)
        boxes = self.optimizer.boxes()
        foreign = {boxes[key] for key in boxes if self._owner(key) not in ours}
        return {box: value for box, value in values.items() if box not in foreign}

    def _owns(self, path: str) -> bool:
        return self.owners[path] == self.communicator.rank

    def _owner(self, key: str) -> int | None:
        """Return the rank that stores a state tensor, None if all ranks store it."""
        path = key.rpartition(".")[0]
        if isinstance(self.optimizer, Combined):
            path = path.partition(".")[2]
        return self.owners.get(path)

    def _steps(self) -> list[float]:
        return [float(part.count) for part in self._parts]

    def _dtypes(self) -> list[DType]:
        return list(dict.fromkeys(box.dtype for box in self._boxes.values()))

    def _shares(self, dtype: DType) -> list[list[str]]:
        """Return the paths of parameters of ``dtype`` by the rank that owns them."""
        shares: list[list[str]] = [[] for _ in range(self.communicator.size)]
        for path, box in self._boxes.items():
            if box.dtype == dtype:
                shares[self.owners[path]].append(path)
        return shares

    def _count(self, paths: Sequence[str]) -> int:
        """Return the total number of elements of parameters."""
        shapes = [self._boxes[path].shape for path in paths]
        return sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes)


def divide(boxes: Mapping[str, Box], ranks: int) -> dict[str, int]:
    """Return a rank for each path, with about equal bytes per rank.

    In order of decreasing size, each goes to the rank with the fewest bytes.
    """
    sizes = {
        path: int(np.prod(box.shape, dtype=np.int64)) * box.dtype.itemsize
        for path, box in boxes.items()
    }
    loads, owners = [0] * ranks, {}
    for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
        rank = loads.index(min(loads))
        owners[path], loads[rank] = rank, loads[rank] + sizes[path]
    return owners
