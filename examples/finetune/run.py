"""Imports the digits classifier, gives it a new last layer and fine-tunes it.

Run it as ``python examples/finetune/run.py``; it writes ``generated/`` beside itself.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, optim, train
from burn_import import ModelGen

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
BATCH, EPOCHS = 32, 2


def generate() -> Any:
    """Return the class generated from the ONNX file."""
    ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    return import_module(MODEL.stem).Digits


def load_set(name: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return images float32[N, 1, 8, 8] and labels int64[N]."""
    with np.load(MODEL.with_name(f"digits_{name}.npz")) as data:
        return data["images"], data["labels"]


def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield whole batches of the training set, shuffled by the number of the epoch."""
    images, labels = load_set("train")
    order = np.random.default_rng(epoch).permutation(len(labels))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        yield burn.tensor(images[chosen]), burn.tensor(labels[chosen])


def accuracy(step: "train.Step[..., train.Classified]") -> float:
    """Return the share of test images that the model names correctly."""
    images, labels = load_set("test")
    output = step.evaluate(burn.tensor(images), burn.tensor(labels))
    return float((output.logits.numpy().argmax(1) == labels).mean())


def main() -> float:
    """Return the accuracy after training; prints it for each epoch."""
    nn.init.seed(0)
    model = generate().load()
    model.head.linear = nn.Linear(model.head.linear.in_features, 10)
    model.to(Autodiff(Cpu()))
    steps = EPOCHS * (len(load_set("train")[1]) // BATCH)
    opt = optim.AdamW(model, lr=1e-3, groups={"head.*": {"lr": 1e-2}}, clip_norm=5.0)

    @train.step(model, opt, optim.cosine(opt, steps, warmup=5))
    def step(images: Tensor, labels: Tensor) -> train.Classified:
        logits = model(images)
        scored = loss.cross_entropy(logits, labels, label_smoothing=0.05)
        return train.Classified(scored, logits, labels)

    print(f"new head: {accuracy(step):.1%} of the test images")
    for epoch in range(EPOCHS):
        losses = [step(*batch).loss.item() for batch in batches(epoch)]
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {accuracy(step):.1%}")
    model.save_weights(OUT / "tuned.safetensors")
    return accuracy(step)


if __name__ == "__main__":
    main()
