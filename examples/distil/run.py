"""Distils the imported digits classifier into a network of two layers.

The small network learns from 200 labeled images alone, then from what the large one
says of all training images, whose labels it never sees. Run it as
``python examples/distil/run.py``; it writes ``generated/`` beside itself.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from burn import Autodiff, Cpu, Tensor, data, loss, nn, ops, optim, train
from burn_import import ModelGen

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
BATCH, EPOCHS, LABELED, TEMPERATURE = 32, 20, 200, 3.0


class Student(nn.Module):
    """Images [N, 1, 8, 8] to ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.head = nn.Linear(32, 10)

    def __call__(self, images: Tensor) -> Tensor:
        return self.head(ops.relu(self.hidden(ops.reshape(images, (-1, 64)))))


def teacher() -> Any:
    """Return the model generated from the ONNX file."""
    ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    return import_module(MODEL.stem).Digits.load()


def load_set(name: str, count: int | None = None) -> data.Memory:
    """Return up to ``count`` pairs of an image float32[1, 8, 8] and its label."""
    with np.load(MODEL.with_name(f"digits_{name}.npz")) as arrays:
        return data.Memory(arrays["images"][:count], arrays["labels"][:count])


def accuracy(model: Any) -> float:
    """Return the share of test images that the model names correctly."""
    hits = [
        model(images).numpy().argmax(1) == labels.numpy()
        for images, labels in data.Loader(load_set("test"), batch=100)
    ]
    return float(np.concatenate(hits).mean())


def fit(large: Any | None) -> Student:
    """Return a student of the labels, or of ``large``."""
    nn.init.seed(0)
    model = Student().to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=5e-3)

    @train.step(model, opt)
    def step(images: Tensor, targets: Tensor) -> Tensor:
        logits = model(images)
        if large is None:
            return loss.cross_entropy(logits, targets)
        return loss.cross_entropy(logits / TEMPERATURE, targets)

    items = load_set("train", LABELED if large is None else None)
    for _ in range(EPOCHS):
        for images, labels in data.Loader(items, batch=BATCH, shuffle=0):
            if large is None:
                step(images, labels)
            else:
                step(images, ops.softmax(large(images) / TEMPERATURE, axis=-1))
    return model.valid()


def main() -> dict[str, float]:
    """Return the accuracies of the large network and of both small ones."""
    large = teacher()
    alone, distilled = fit(None), fit(large)
    shares = {
        "large": accuracy(large),
        "labels": accuracy(alone),
        "distilled": accuracy(distilled),
    }
    distilled.save_weights(OUT / "student.safetensors")
    size = distilled.num_parameters() / large.num_parameters()
    print(f"large network: {shares['large']:.1%} of the test images")
    print(f"small one, {size:.0%} of its parameters: {shares['labels']:.1%} by labels")
    print(f"small one, distilled: {shares['distilled']:.1%}")
    return shares


if __name__ == "__main__":
    main()
