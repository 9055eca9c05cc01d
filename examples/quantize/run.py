"""Fine-tunes the digits classifier for weights of two bits.

Rounding the trained weights to three numbers a channel costs much of the accuracy.
Training goes on with rounded weights in the forward pass and the gradients of the
others in the backward pass (quantization-aware training). The result is exported to
ONNX, with a scale for each channel. Run it as ``python examples/quantize/run.py``; it
writes ``generated/`` beside itself.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn import Autodiff, Cpu, Tensor, data, loss, nn, ops, optim, train
from burn_import import ModelGen, export_onnx

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
BATCH, EPOCHS = 32, 2
#: Weights are one of these integers times the scale of their channel.
LOW, HIGH = -1, 1


class Rounded(nn.Module):
    """A convolution or a linear layer with weights of two bits."""

    def __init__(self, layer: "nn.Conv2d | nn.Linear") -> None:
        super().__init__()
        self.layer = layer

    def weight(self) -> Tensor:
        """Return the rounded weights: [outputs, ...], with a scale for each output."""
        weight = self.layer.weight
        axes = tuple(range(1, weight.ndim))
        # Weights below three quarters of the mean size become 0, half of the scale.
        scale = ops.abs(weight).mean(axes, keepdims=True) * 1.5
        zero = burn.tensor(0, scale.backend, dtype=burn.int32)
        return ops.fake_quantize(weight, scale, zero, low=LOW, high=HIGH)

    def __call__(self, x: Tensor) -> Tensor:
        layer = self.layer
        if isinstance(layer, nn.Linear):
            return ops.linear(x, self.weight(), layer.bias)
        return ops.conv(x, self.weight(), layer.bias, padding=layer.padding)


def rounded() -> Any:
    """Return the imported model with layers of rounded weights."""
    model = import_module(MODEL.stem).Digits.load()
    model.stem.conv = Rounded(model.stem.conv)
    model.block.conv = Rounded(model.block.conv)
    model.head.linear = Rounded(model.head.linear)
    return model


def load_set(name: str) -> data.Memory:
    """Return pairs of an image float32[1, 8, 8] and its label."""
    with np.load(MODEL.with_name(f"digits_{name}.npz")) as arrays:
        return data.Memory(arrays["images"], arrays["labels"])


def accuracy(model: Any) -> float:
    """Return the share of test images that the model names correctly."""
    hits = [
        model(images).numpy().argmax(1) == labels.numpy()
        for images, labels in data.Loader(load_set("test"), batch=100)
    ]
    return float(np.concatenate(hits).mean())


def fit() -> Any:
    """Return the model after training with rounded weights."""
    model = rounded().to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=1e-3)

    @train.step(model, opt)
    def step(images: Tensor, labels: Tensor) -> Tensor:
        return loss.cross_entropy(model(images), labels)

    for _ in range(EPOCHS):
        for images, labels in data.Loader(load_set("train"), batch=BATCH, shuffle=0):
            step(images, labels)
    return model.valid()


def export(model: Any) -> None:
    """Write an ONNX file that rounds weights by QuantizeLinear and DequantizeLinear."""
    images, _ = next(iter(data.Loader(load_set("test"), batch=100)))
    path, dynamic = OUT / "rounded.onnx", {"image": {0: "batch"}}
    export_onnx(model, images, path, dynamic=dynamic, force=True)


def save(model: Any) -> None:
    """Write a record of the original layers with the rounded weights."""
    for part in (model.stem, model.block, model.head):
        name = "linear" if part is model.head else "conv"
        layer = getattr(part, name)
        weight = layer.weight()
        setattr(part, name, layer.layer)
        layer.layer.weight.set(weight)
    model.save_weights(OUT / "rounded.safetensors")


def main() -> dict[str, float]:
    """Return the accuracies: as imported, rounded, and trained with rounded weights."""
    ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    tuned = fit()
    shares = {
        "float32": accuracy(import_module(MODEL.stem).Digits.load()),
        "rounded": accuracy(rounded()),
        "trained": accuracy(tuned),
    }
    export(tuned)
    save(tuned)
    print(f"weights of 32 bits: {shares['float32']:.1%} of the test images")
    print(f"rounded to 2 bits: {shares['rounded']:.1%}")
    print(f"trained with 2 bits: {shares['trained']:.1%}")
    return shares


if __name__ == "__main__":
    main()
