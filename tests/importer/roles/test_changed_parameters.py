"""Parameters that a program changes in place are trained as PyTorch trains them."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, optim, train
from burn_import import load

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]


def network(kind: str) -> tuple[Any, Any]:
    """Return a network that changes a parameter in its call, and an input."""
    import torch
    from torch import nn

    class Clamped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))
            self.register_buffer("calls", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            if kind == "no_grad":
                with torch.no_grad():
                    self.weight.clamp_(-0.5, 0.5)
            else:
                self.weight.detach().clamp_(-0.5, 0.5)
            self.calls.detach().add_(0.125)
            return x @ self.weight + self.calls

    class Bags(nn.Sequential):
        def forward(self, x: Any) -> Any:
            return self[1](self[0](x).sum(1))

    torch.manual_seed(0)
    if kind in ("no_grad", "detach"):
        return Clamped(), torch.randn(2, 3)
    tables = {
        "max_norm": nn.Embedding(10, 4, max_norm=1.0),
        "norm_type": nn.Embedding(10, 4, max_norm=2.0, norm_type=1.0),
        "below": nn.Embedding(10, 4, max_norm=100.0),
    }
    return Bags(tables[kind], nn.Linear(4, 3)), torch.tensor([[1, 2, 3], [4, 5, 1]])


def export(net: Any, x: Any, form: str, path: Path) -> None:
    """Write the network in a format, and undo the changes by calls."""
    import torch

    state = {key: value.clone() for key, value in net.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "pt":
            torch.jit.trace(net, (x,), check_trace=False).save(path)
        else:
            program = torch.export.export(net, (x,))
            if form == "decomposed.pt2":
                program = program.run_decompositions()
            torch.export.save(program, path)
    net.load_state_dict(state)


@pytest.mark.parametrize("form", ["pt2", "decomposed.pt2", "pt"])
@pytest.mark.parametrize(
    "kind", ["max_norm", "norm_type", "below", "no_grad", "detach"]
)
def test_steps_are_those_of_pytorch(kind: str, form: str, tmp_path: Path) -> None:
    import torch

    net, x = network(kind)
    path = tmp_path / f"net.{form}"
    export(net, x, form, path)
    models = [load(path).to(Autodiff(Cpu())) for _ in range(2)]
    first = {key: value.numpy().copy() for key, value in net.state_dict().items()}
    if form == "pt":  # the archive has what the traced call left
        net.load_state_dict(
            {k: torch.tensor(v.numpy()) for k, v in models[0].state_dict().items()}
        )
    steps = [
        train.step(model, optim.SGD(model, lr=0.5), compiled=compiled)(
            lambda x, model=model: (model(x) ** 2.0).mean()
        )
        for model, compiled in zip(models, (False, True), strict=True)
    ]
    descent = torch.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(4):
        value = net(x).square().mean()
        descent.zero_grad()
        value.backward()
        descent.step()
        for step in steps:
            ours = step(burn.tensor(x.numpy()))
            np.testing.assert_allclose(ours.numpy(), value.item(), rtol=1e-5)
    for model in models:
        assert dict(model.parameters()).keys() == dict(net.named_parameters()).keys()
        for key, expected in net.state_dict().items():
            result = model.state_dict()[key].numpy()
            np.testing.assert_allclose(result, expected.numpy(), rtol=1e-5, atol=1e-6)
            assert not np.array_equal(result, first[key])
