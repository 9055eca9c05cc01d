"""Trains the digits classifier and writes its ONNX file, data sets and metrics.

Needs PyTorch and scikit-learn, which nothing else in the repository does; the files
that it writes are committed. Run it as ``python -m models.digits.train`` at the root.
"""

import json
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from models.export import export_onnx

HERE = Path(__file__).parent
SEED = 7
TEST_SHARE = 0.25
EPOCHS = 40
BATCH = 64


class ConvBlock(nn.Module):
    """3x3 convolution, batch normalization, ReLU: [N, inputs, H, W] -> outputs."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(x)))


class Head(nn.Module):
    """2x2 max pooling and a linear layer: [N, 32, 8, 8] -> [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.pool(x).flatten(1))


class Digits(nn.Module):
    """Grey images [N, 1, 8, 8] with values in [0, 1] -> logits [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvBlock(1, 16)
        self.block = ConvBlock(16, 32)
        self.head = Head()

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.block(self.stem(image)))


def load_split() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training images, test images, training labels, test labels."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    parts = train_test_split(
        images, labels, test_size=TEST_SHARE, random_state=SEED, stratify=labels
    )
    first, second, third, fourth = (torch.from_numpy(part) for part in parts)
    return first, second, third, fourth


def train(model: Digits, images: Tensor, labels: Tensor) -> None:
    """Return nothing; fits ``model`` to the training part with Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    model.train()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()


def main() -> None:
    """Return nothing; writes the models, both data sets and metrics.json."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    train_images, test_images, train_labels, test_labels = load_split()
    model = Digits()
    train(model, train_images, train_labels)
    with torch.no_grad():
        correct = int((model(test_images).argmax(1) == test_labels).sum())
    metrics = {
        "accuracy": correct / len(test_labels),
        "correct": correct,
        "test_images": len(test_labels),
        "train_images": len(train_labels),
        "seed": SEED,
        "torch": torch.__version__.partition("+")[0],
    }
    (HERE / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    for part, images, labels in (
        ("train", train_images, train_labels),
        ("test", test_images, test_labels),
    ):
        np.savez_compressed(
            HERE / f"digits_{part}.npz", images=images.numpy(), labels=labels.numpy()
        )
    export_onnx(model, test_images[:2], HERE / "digits.onnx", "image", "logits")
    state = nn.DataParallel(model).state_dict()
    torch.save({"epoch": EPOCHS, "state_dict": state}, HERE / "digits.pt")
    print(json.dumps(metrics))


if __name__ == "__main__":
    main()
