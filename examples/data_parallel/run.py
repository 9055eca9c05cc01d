"""Fine-tunes the digits classifier in several processes, connected by MPI.

Run it as ``mpiexec -n 2 python examples/data_parallel/run.py``, or without ``mpiexec``
in one process. The gradients are the same, but for batch norms, which see the images of
their process alone. It writes ``generated/`` beside itself.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from burn import Autodiff, Cpu, Tensor, data, loss, nn, optim, train
from burn.distributed import Communicator, Mpi
from burn_import import ModelGen

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
BATCH, EPOCHS = 32, 2


def generate(comm: Communicator) -> Any:
    """Return the class generated from the ONNX file, which rank 0 writes."""
    if comm.rank == 0:
        ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    comm.barrier()
    sys.path.insert(0, str(OUT))
    return import_module(MODEL.stem).Digits


def batches(name: str, comm: Communicator, batch: int) -> data.Loader:
    """Return this process's share of batches of images and labels."""
    with np.load(MODEL.with_name(f"digits_{name}.npz")) as arrays:
        items = data.Memory(arrays["images"], arrays["labels"])
    return data.Loader(items, batch, shuffle=0, rank=comm.rank, ranks=comm.size)


def accuracy(step: "train.Step[..., train.Classified]", comm: Communicator) -> float:
    """Return the share of test images named correctly, a part by each process."""
    counts = np.zeros(2, np.int64)
    for images, labels in batches("test", comm, batch=100):
        classes = step.evaluate(images, labels).logits.numpy().argmax(1)
        counts += [(classes == labels.numpy()).sum(), len(classes)]
    correct, count = comm.all_reduce(counts)
    return float(correct / count)


def main() -> float:
    """Return the accuracy after training; rank 0 prints it for each epoch."""
    comm = Mpi()
    nn.init.seed(0)
    model = generate(comm).load()
    model.head.linear = nn.Linear(model.head.linear.in_features, 10)
    model.to(Autodiff(Cpu()))
    adam = optim.AdamW(model, lr=1e-3, groups={"head.*": {"lr": 1e-2}})
    opt = optim.ZeroRedundancyOptimizer(adam, comm)

    @train.step(model, opt, communicator=comm)
    def step(images: Tensor, labels: Tensor) -> train.Classified:
        logits = model(images)
        scored = loss.cross_entropy(logits, labels, label_smoothing=0.05)
        return train.Classified(scored, logits, labels)

    loader = batches("train", comm, batch=BATCH)
    share = 0.0
    for epoch in range(EPOCHS):
        for images, labels in loader:
            step(images, labels)
        share = accuracy(step, comm)
        if comm.rank == 0:
            print(f"epoch {epoch + 1}, {comm.size} processes: {share:.1%}", flush=True)
    if comm.rank == 0:
        model.save_weights(OUT / "tuned.safetensors")
    return share


if __name__ == "__main__":
    main()
