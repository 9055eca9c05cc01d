"""Fine-tunes the digits classifier with a custom loop, in bfloat16.

Gradients, clipping and the update are written out where ``train.step`` has them built
in. Run it as ``python examples/custom_loop/run.py``; it writes ``generated/`` beside
itself.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn import Autodiff, Cpu, Tensor, data, loss, nn, optim
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


def load_set(name: str) -> data.Memory:
    """Return pairs of an image float32[1, 8, 8] and its label."""
    with np.load(MODEL.with_name(f"digits_{name}.npz")) as arrays:
        return data.Memory(arrays["images"], arrays["labels"])


def accuracy(model: Any) -> float:
    """Return the share of test images that the model names correctly."""
    correct = count = 0
    with nn.inference():
        for images, labels in data.Loader(load_set("test"), batch=100):
            classes = model(images).numpy().argmax(1)
            correct += int((classes == labels.numpy()).sum())
            count += len(classes)
    return correct / count


def main() -> float:
    """Return the accuracy after training; prints it for each epoch."""
    nn.init.seed(0)
    model = generate().load()
    model.head.linear = nn.Linear(model.head.linear.in_features, 10)
    model.to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=1e-3, groups={"head.*": {"lr": 1e-2}})
    loader = data.Loader(load_set("train"), batch=BATCH, shuffle=0, drop_last=True)
    schedule = optim.cosine(opt, EPOCHS * len(loader), warmup=5)

    @burn.compile
    def step(images: Tensor, labels: Tensor) -> Tensor:
        with nn.autocast("bf16"):
            value = loss.cross_entropy(model(images), labels, label_smoothing=0.05)
        gradients = value.backward().by_name(model)
        opt.step(optim.clip_grad_norm(gradients, 5.0))
        schedule.step()
        return value.detach()

    print(f"new head: {accuracy(model):.1%} of the test images")
    for epoch in range(EPOCHS):
        losses = [step(images, labels).item() for images, labels in loader]
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {accuracy(model):.1%}")
    return accuracy(model)


if __name__ == "__main__":
    main()
