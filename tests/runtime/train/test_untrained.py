"""A learner names trainable parameters that no gradient reaches."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from burn import Autodiff, Cpu, Tensor, nn, ops, optim, train


class Net(nn.Module):
    """[N, 3] to [N, 2], through integers behind the first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(3, 4), nn.LayerNorm(4)
        self.head = nn.Linear(4, 2)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm(self.first(x))
        whole = ops.quantize(x, 0.1, 128)
        return self.head(ops.dequantize(whole, 0.1, 128))


BATCHES = [(np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32))] * 3
NAMES = ["first.weight", "first.bias", "norm.weight", "norm.bias"]


def make_step(model: Net, compiled: bool) -> train.Step[[Tensor, Tensor], Tensor]:
    opt = optim.SGD(model, lr=0.1)

    @train.step(model, opt, compiled=compiled)
    def step(x: Tensor, y: Tensor) -> Tensor:
        return ((model(x) - y) ** 2.0).mean()

    return step


@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_without_a_gradient_are_named(
    tmp_path: Path, compiled: bool
) -> None:
    step = make_step(Net().to(Autodiff(Cpu())), compiled)
    assert step.untrained == []
    learner = train.Learner(tmp_path, step, progress=False)
    message = re.escape(f"no gradient reaches {', '.join(NAMES)}: they stay")
    with pytest.warns(UserWarning, match=message) as caught:
        learner.fit(BATCHES, epochs=2)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert step.untrained == NAMES


def test_frozen_parameters_are_not_named(tmp_path: Path) -> None:
    model = Net().to(Autodiff(Cpu()))
    step = make_step(model.freeze("first").freeze("norm"), compiled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train.Learner(tmp_path, step, progress=False).fit(BATCHES, epochs=1)
    assert step.untrained == []
