"""Loads a checkpoint of PyTorch into a module that is written by hand.

Run it as ``python examples/weights/run.py``. PyTorch is not needed, and nothing in the
checkpoint is executed. The module has other names than the network that was trained,
and a head that the checkpoint does not know.
"""

from pathlib import Path

import numpy as np

import burn
from burn import Tensor, nn, ops
from burn.store import Report
from burn_import.pytorch import open_store, read

MODELS = Path(__file__).parents[2] / "models" / "digits"
CHECKPOINT = MODELS / "digits.pt"


class Classifier(nn.Module):
    """Images float32[N, 1, 8, 8] to logits of digits, and whether a digit is even."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            ops.relu,
            nn.Conv2d(16, 32, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            ops.relu,
            nn.MaxPool2d(2),
        )
        self.digit = nn.Linear(512, 10)
        self.even = nn.Linear(10, 1, bias=False)  # not in the checkpoint

    def __call__(self, image: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.digit(self.features(image).flatten(1))
        return logits, self.even(ops.softmax(logits))


def load(path: Path) -> tuple[Classifier, Report]:
    """Return the classifier with the weights of a checkpoint, and a report."""
    model = Classifier()
    store = (
        open_store(path, top_level_key="state_dict")
        .with_key_remapping(r"^module\.", "")
        .with_key_remapping(r"^stem\.conv", "features.0")
        .with_key_remapping(r"^stem\.norm", "features.1")
        .with_key_remapping(r"^block\.conv", "features.3")
        .with_key_remapping(r"^block\.norm", "features.4")
        .with_key_remapping(r"^head\.linear", "digit")
        .allow_partial()
    )
    report = store.load(model)
    signs = np.array([[1, -1] * 5], np.float32)  # probability of even minus odd
    model.even.weight.set(burn.tensor(signs))
    return model, report


def main() -> tuple[int, int]:
    """Return how many test images get the right digit and parity; print it."""
    for key, tensor in list(read(CHECKPOINT, "state_dict").items())[:3]:
        print(f"{key:<32} {tensor.dtype} {tensor.shape}")
    model, report = load(CHECKPOINT)
    print(report)
    with np.load(MODELS / "digits_test.npz") as data:
        images, labels = data["images"], data["labels"]
    logits, even = (x.numpy() for x in model(burn.tensor(images)))
    right = int((logits.argmax(1) == labels).sum())
    parity = int(((even[:, 0] > 0) == (labels % 2 == 0)).sum())
    print(f"digit right: {right} of {len(labels)}, parity right: {parity}")
    return right, parity


if __name__ == "__main__":
    main()
