"""Trains a GRU that names the shape of a noisy wave; writes model, test set, metrics.

The data are made by this script from a fixed seed. Needs PyTorch; the files that it
writes are committed. Run it as ``python -m models.waves.train`` at the root.
"""

import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.export import export_onnx

HERE = Path(__file__).parent
SEED = 11
STEPS = 32
NOISE = 0.1
TRAIN_WAVES = 2048
TEST_WAVES = 256
EPOCHS = 40
BATCH = 64
SHAPES = ("sine", "square", "triangle", "sawtooth")


class Waves(nn.Module):
    """Waves [N, 32, 1] -> logits [N, 4], one per entry of ``SHAPES``."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(1, 24, batch_first=True)
        self.classifier = nn.Linear(24, len(SHAPES))

    def forward(self, wave: Tensor) -> Tensor:
        states, _ = self.encoder(wave)
        return self.classifier(states[:, -1])


def make_waves(
    count: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return waves float32[count, STEPS, 1] and labels int64[count].

    A wave has a random shape, one to three periods, a random phase and an amplitude
    of 0.5 to 1.5, and carries normal noise.
    """
    labels = rng.integers(0, len(SHAPES), count)
    periods = rng.uniform(1, 3, (count, 1))
    phase = rng.uniform(0, 1, (count, 1))
    turn = (np.linspace(0, 1, STEPS) * periods + phase) % 1
    sine = np.sin(2 * np.pi * turn)
    shapes = np.stack(
        [sine, np.sign(sine), 4 * np.abs(turn - 0.5) - 1, 2 * turn - 1], axis=1
    )
    waves = shapes[np.arange(count), labels] * rng.uniform(0.5, 1.5, (count, 1))
    waves += rng.normal(0, NOISE, waves.shape)
    return waves[..., None].astype(np.float32), labels.astype(np.int64)


def train(model: Waves, waves: Tensor, labels: Tensor) -> None:
    """Return nothing; fits ``model`` to the training part with Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(waves)).split(BATCH):
            loss = nn.functional.cross_entropy(model(waves[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    model.eval()


def main() -> None:
    """Return nothing; writes waves.onnx, waves_test.npz and metrics.json."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED)
    waves, labels = make_waves(TRAIN_WAVES, rng)
    test_waves, test_labels = make_waves(TEST_WAVES, rng)
    model = Waves()
    train(model, torch.from_numpy(waves), torch.from_numpy(labels))
    with torch.no_grad():
        answers = model(torch.from_numpy(test_waves)).argmax(1).numpy()
    correct = int((answers == test_labels).sum())
    metrics = {
        "accuracy": correct / TEST_WAVES,
        "correct": correct,
        "test_waves": TEST_WAVES,
        "train_waves": TRAIN_WAVES,
        "seed": SEED,
        "torch": torch.__version__.partition("+")[0],
    }
    (HERE / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    np.savez_compressed(HERE / "waves_test.npz", waves=test_waves, labels=test_labels)
    example = torch.from_numpy(test_waves[:2])
    export_onnx(model, example, HERE / "waves.onnx", "wave", "logits")
    print(json.dumps(metrics))


if __name__ == "__main__":
    main()
