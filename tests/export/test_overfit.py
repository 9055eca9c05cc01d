"""A detector of the zoo learns a few samples by heart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, loss, ops, optim, train
from tests.written_modules import Modules

SAMPLES, PASSES = 4, 24


@pytest.mark.models
@pytest.mark.thorough
def test_ultraface_overfits_a_few_samples(
    pytestconfig: pytest.Config, modules: Modules
) -> None:
    zoo: Path = pytestconfig.getoption("--zoo")
    path = zoo / "real" / "ultraface" / "rfb_320.onnx"
    if not path.exists():
        pytest.skip(f"the zoo is not here: {path}")
    model: Any = modules.load(path).to(Autodiff(Cpu()))
    rng = np.random.default_rng(0)
    images = rng.normal(size=(SAMPLES, 1, 3, 240, 320)).astype(np.float32) * 0.5
    anchors = model(burn.tensor(images[0]))[0].shape[1]
    classes = np.zeros((SAMPLES, 1, anchors), np.int64)
    for sample, first in enumerate(rng.integers(0, anchors - 40, SAMPLES)):
        classes[sample, 0, first : first + 40] = 1

    @train.step(model, optim.Adam(model, lr=3e-3), accumulate=SAMPLES)
    def step(image: Tensor, target: Tensor) -> Tensor:
        scores, _ = model(image)  # probabilities: the file ends with softmax
        return loss.nll_loss(ops.permute(ops.log(scores + 1e-7), (0, 2, 1)), target)

    losses = [
        np.mean([float(step(*map(burn.tensor, pair))) for pair in pairs])
        for pairs in [list(zip(images, classes, strict=True))] * PASSES
    ]
    assert losses[0] > 0.03
    assert losses[-1] < 0.05 * losses[0]
