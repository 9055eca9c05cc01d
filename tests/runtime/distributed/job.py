"""A job of several processes: trains a small network and writes weights by rank.

Usage: python job.py MODE FOLDER
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from burn import Autodiff, Cpu, Tensor, data, loss, nn, ops, optim, train
from burn.distributed import Communicator, Mpi

ITEMS, BATCH, EPOCHS = 42, 16, 3


class Net(nn.Module):
    """[N, 6] to four classes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 9)
        self.head = nn.Linear(9, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(ops.tanh(self.first(x)))


def items() -> data.Memory:
    """Return the same items in every process."""
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((ITEMS, 6), np.float32)
    return data.Memory(inputs, generator.integers(0, 4, ITEMS))


def fit(
    communicator: Communicator | None,
    *,
    seed: int = 0,
    compiled: bool = True,
    accumulate: int = 1,
) -> dict[str, Any]:
    """Return the weights after some epochs, of which the last batch is uneven."""
    nn.init.seed(seed)
    model = Net().to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=0.02, clip_norm=0.5)

    @train.step(
        *(model, opt),
        accumulate=accumulate,
        compiled=compiled,
        communicator=communicator,
    )
    def step(x: Tensor, y: Tensor) -> Tensor:
        return loss.cross_entropy(model(x), y)

    rank, ranks = 0, 1
    if communicator is not None:
        rank, ranks = communicator.rank, communicator.size
    loader = data.Loader(items(), batch=BATCH, shuffle=1, rank=rank, ranks=ranks)
    for _ in range(EPOCHS):
        for batch in loader:
            step(*batch)
    return {name: value.numpy() for name, value in model.state_dict().items()}


def main(mode: str, folder: str) -> None:
    """Train, or end in one of the ways that jobs do."""
    communicator = Mpi()
    rank = communicator.rank
    if mode == "error" and rank == 1:
        raise ValueError("rank 1 found no data")
    started = Path(folder) / f"{rank}.part"
    started.write_text(str(os.getpid()))
    started.rename(started.with_suffix(".started"))
    if mode == "wait" and rank == 1:
        time.sleep(600)
    communicator.barrier()
    # Weights start as those of rank 0, whatever the seed.
    weights = fit(
        communicator,
        seed=rank,
        compiled=mode != "eager",
        accumulate=3 if mode == "accumulate" else 1,
    )
    np.savez(Path(folder) / f"{rank}.npz", **weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
