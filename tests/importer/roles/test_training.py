"""Programs exported in training mode: inference without autodiff, training with it."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]


def network(*middle: Any) -> Any:
    """Return a network in training mode, with statistics that say something."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    parts = {"fc": nn.Linear(4, 6), "bn": nn.BatchNorm1d(6), "head": nn.Linear(6, 3)}

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)
            self.middle = nn.ModuleList(middle)

        def forward(self, x: Any) -> Any:
            x = parts["bn"](parts["fc"](x)).relu()
            for step in self.middle:
                x = step(x)
            return parts["head"](x)

    net = Net().train()
    nn.init.normal_(net.bn.running_mean)
    nn.init.uniform_(net.bn.running_var, 0.5, 2)
    return net


def exported(net: Any, x: Any, form: str, folder: Path) -> Path:
    import torch

    path = folder / f"net.{form}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "pt2":
            torch.export.save(torch.export.export(net, (x,), strict=False), path)
        else:
            state = {key: value.clone() for key, value in net.state_dict().items()}
            traced = torch.jit.trace(net, (x,), check_trace=False)
            net.load_state_dict(state)  # tracing is a call in training mode
            traced.save(path)
    return path


@pytest.mark.parametrize("form", ["pt2", "pt"])
def test_inference_is_that_of_eval(form: str, tmp_path: Path) -> None:
    import torch

    net, x = network(torch.nn.Dropout(0.5)), torch.randn(5, 4)
    path = exported(net, x, form, tmp_path)
    given = burn.tensor(x.numpy())
    with torch.no_grad():
        expected = net.eval()(x).numpy()
    for each in (load(path), load(path).to(burn.Autodiff(burn.Cpu())).valid()):
        for _ in range(2):  # nothing is changed
            actual = each(given).numpy()  # type: ignore[operator]
            np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize("form", ["pt2", "pt"])
def test_training_is_that_of_train(form: str, tmp_path: Path) -> None:
    import torch

    net, x = network(), torch.randn(5, 4)
    module = load(exported(net, x, form, tmp_path)).to(burn.Autodiff(burn.Cpu()))
    actual = module(burn.tensor(x.numpy())).numpy()  # type: ignore[operator]
    with torch.no_grad():
        np.testing.assert_allclose(actual, net.train()(x).numpy(), atol=1e-5)
    state = module.state_dict()
    for key in ("bn.running_mean", "bn.running_var"):
        expected = net.state_dict()[key].numpy()
        np.testing.assert_allclose(state[key].numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("form", ["pt2", "pt"])
def test_dropout_acts_in_training(form: str, tmp_path: Path) -> None:
    import torch

    net, x = network(torch.nn.Dropout(0.5)), torch.randn(5, 4)
    module = load(exported(net, x, form, tmp_path)).to(burn.Autodiff(burn.Cpu()))
    given = burn.tensor(x.numpy())
    first, second = (module(given).numpy() for _ in range(2))  # type: ignore[operator]
    assert not np.array_equal(first, second)
