"""A job of several processes: trains a small network and writes weights by rank.

Usage: python job.py MODE FOLDER
"""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from burn import Autodiff, Cpu, Tensor, data, loss, nn, ops, optim, train
from burn.distributed import Communicator, Launch, Mpi
from burn.train.metrics import Batch

ITEMS, BATCH, EPOCHS = 42, 16, 3
SELF = Launch()  # one process
#: What is asked of ``fit`` by the modes that train.
OPTIONS: dict[str, dict[str, Any]] = {
    "compiled": {},
    "eager": {"compiled": False},
    "accumulate": {"accumulate": 3},
    "buckets": {"bucket_mb": 0.0001},
    "sharded": {"sharded": True},
    "sharded eager": {"sharded": True, "compiled": False},
    "sharded accumulate": {"sharded": True, "accumulate": 3},
    "first half": {"sharded": True, "epochs": 1},
    "second half": {"sharded": True, "epochs": 2, "resumed": True},
    "wait": {},
}


#: The same of ``learn``.
LEARNER: dict[str, dict[str, Any]] = {
    "learner": {},
    "learner sharded": {"sharded": True},
    "learner interrupted": {"interrupted": True, "sharded": True},
    "learner resumed": {"resumed": True, "sharded": True},
}


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
    bucket_mb: float = 25.0,
    sharded: bool = False,
    epochs: int = EPOCHS,
    resumed: bool = False,
    checkpoint: Path | None = None,
) -> dict[str, Any]:
    """Return the weights after some epochs, of which the last batch is uneven.

    With ``sharded`` the state is divided, and written to ``checkpoint``.
    """
    nn.init.seed(seed)
    model = Net().to(Autodiff(Cpu()))
    opt = optimizer(model, communicator if sharded else None)
    ema = optim.EMA(model, decay=0.9)

    @train.step(
        *(model, opt),
        accumulate=accumulate,
        compiled=compiled,
        communicator=communicator,
        bucket_mb=bucket_mb,
        ema=ema,
    )
    def step(x: Tensor, y: Tensor) -> Tensor:
        return loss.cross_entropy(model(x), y)

    rank, ranks = (communicator or SELF).rank, (communicator or SELF).size
    loader = data.Loader(items(), batch=BATCH, shuffle=1, rank=rank, ranks=ranks)
    if resumed and checkpoint is not None:
        step.load(checkpoint)
        loader.load_state_dict({**loader.state_dict(), "epoch": 1})
    for _ in range(epochs):
        for batch in loader:
            step(*batch)
    if isinstance(opt, optim.ZeroRedundancyOptimizer):
        opt.consolidate_state_dict()
    if checkpoint is not None and rank == 0:
        step.save(checkpoint)
    return arrays(model, ema)


class Interrupting(train.Logger):
    """Interrupts a learner after the second batch of its second epoch."""

    def __init__(self) -> None:
        self.learner: train.Learner | None = None

    def log_batch(
        self,
        split: str,
        epoch: int,
        number: int,
        batch: Batch,
        values: Mapping[str, float],
    ) -> None:
        if (split, epoch, number) == ("train", 2, 2) and self.learner is not None:
            self.learner.interrupt()


def learn(
    communicator: Communicator | None,
    folder: Path,
    *,
    seed: int = 0,
    sharded: bool = False,
    interrupted: bool = False,
    resumed: bool = False,
) -> dict[str, Any]:
    """Return the weights that a learner trains, and the values of its epochs.

    With ``interrupted`` rank 0 ends the second epoch, which the other ranks join.
    """
    nn.init.seed(seed)
    model = Net().to(Autodiff(Cpu()))
    opt = optimizer(model, communicator if sharded else None)

    @train.step(model, opt, communicator=communicator)
    def step(x: Tensor, y: Tensor) -> train.Classified:
        logits = model(x)
        return train.Classified(loss.cross_entropy(logits, y), logits, y)

    rank, ranks = (communicator or SELF).rank, (communicator or SELF).size
    batches = data.Loader(items(), batch=BATCH, shuffle=1, rank=rank, ranks=ranks)
    inputs, labels = items().arrays
    # One batch more in the first process.
    valid = [(inputs[part], labels[part]) for part in np.split(np.arange(20), (8, 13))]
    metrics = train.metrics
    interrupting = Interrupting()
    learner = train.Learner(
        folder,
        step,
        metrics=[metrics.Loss(), metrics.Accuracy(), metrics.AUROC()],
        loggers=[interrupting],
        progress=False,
    )
    interrupting.learner = learner if interrupted else None
    try:
        result = learner.fit(batches, valid[rank::ranks], epochs=3, resume=resumed)
    except KeyboardInterrupt:
        assert interrupted
        return {}
    columns = {key: [row[key] for row in result.history] for key in result.history[0]}
    return {**{k: v.numpy() for k, v in model.state_dict().items()}, **columns}


def optimizer(model: Net, communicator: Communicator | None) -> train.AnyOptimizer:
    """Return AdamW, with its state divided if there is a communicator."""
    opt = optim.AdamW(model, lr=0.02, clip_norm=0.5)
    if communicator is None:
        return opt
    return optim.ZeroRedundancyOptimizer(opt, communicator)


def arrays(model: Net, ema: optim.EMA) -> dict[str, Any]:
    """Return weights and averages by name."""
    averages = {f"{name} mean": value for name, value in ema.state_dict().items()}
    values = {**model.state_dict(), **averages}
    return {name: value.numpy() for name, value in values.items()}


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
    if mode in LEARNER:
        weights = learn(communicator, Path(folder) / "run", seed=rank, **LEARNER[mode])
        np.savez(Path(folder) / f"{rank}.npz", **weights)
        return
    path = Path(folder) / "run.safetensors"
    weights = fit(communicator, seed=rank, checkpoint=path, **OPTIONS[mode])
    np.savez(Path(folder) / f"{rank}.npz", **weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
