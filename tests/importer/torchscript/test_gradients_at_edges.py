"""Gradients of composed functions where a component has none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu
from burn_import import load
from tests.importer.script_files import example, net

#: A function, points (x, y), and the derivatives by x and y there, as in PyTorch.
CASES = {
    "torch.atan2(x, y)": [
        ((0.0, 2.0), (0.5, 0.0)),
        ((0.0, -2.0), (-0.5, 0.0)),
        ((2.0, 0.0), (0.0, -0.5)),
        ((-2.0, 0.0), (0.0, 0.5)),
        ((1.0, 1.0), (0.5, -0.5)),
        ((-1.0, -1.0), (-0.5, 0.5)),
    ],
    "torch.xlogy(x, y)": [
        ((0.0, 1.0), (0.0, 0.0)),
        ((0.0, np.e), (1.0, 0.0)),
        ((2.0, 0.5), (np.log(0.5), 4.0)),
    ],
    "torch.mul(torch.clamp(x, -1, 2), y)": [
        ((-1.0, 3.0), (0.0, -1.0)),
        ((2.0, 3.0), (0.0, 2.0)),
        ((1.5, 3.0), (3.0, 1.5)),
    ],
    "torch.mul(torch.clamp(x, 0), y)": [((0.0, 3.0), (0.0, 0.0))],
    "torch.mul(torch.hardtanh(x, 0., 6.), y)": [((6.0, 3.0), (0.0, 6.0))],
    "torch.logaddexp(x, y)": [((1.0, 1.0), (0.5, 0.5)), ((-np.inf, 1.0), (0.0, 1.0))],
    "torch.binary_cross_entropy(torch.sigmoid(x), y, None, 0)": [
        ((-200.0, 0.0), (0.0, 100.0)),
        ((200.0, 1.0), (0.0, -100.0)),
        ((200.0, 0.0), (0.0, -100.0)),
        ((0.0, 1.0), (-0.5, 0.0)),
    ],
    "torch.mul(torch.std(torch.stack([x, x], 1), [1], True), y)": [
        ((2.0, 1.0), (0.0, 0.0))
    ],
    "torch.atan2(torch.mul(x, y), torch.mul(x, y))": [((0.0, 0.0), (0.0, 0.0))],
    "torch.logcumsumexp(torch.stack([x, y]), 0)": [
        ((-np.inf, 1.0), (0.0, 1.0)),
        ((1.0, 1.0), (1.5, 0.5)),
    ],
    "torch.mul(torch.sinc(x), y)": [((0.0, 3.0), (0.0, 1.0))],
    "torch.linalg_vector_norm(torch.stack([x, y], 1), 3., [1])": [
        ((0.0, 0.0), (0.0, 0.0)),
        ((1.0, 0.0), (1.0, 0.0)),
    ],
    "torch.select(torch._safe_softmax(torch.stack([x, y], 1), 1, None), 1, 0)": [
        ((-np.inf, -np.inf), (0.0, 0.0)),
        ((1.0, 1.0), (0.25, -0.25)),
    ],
}


@pytest.mark.parametrize("call", CASES)
def test_gradients_are_those_of_the_function(call: str, tmp_path: Path) -> None:
    inputs = example("Float", 4), example("Float", 4)
    script = net(f"return {call}", *inputs, parameters="x: Tensor,\n    y: Tensor")
    model: Any = load(script.saved(tmp_path)).to(Autodiff(Cpu()))
    points, slopes = (np.array(values).T for values in zip(*CASES[call], strict=True))
    x, y = (
        burn.tensor(np.float32(p), backend=Autodiff(Cpu())).require_grad()
        for p in points
    )
    gradients = model(x, y).sum().backward()
    actual = [gradients[x].numpy(), gradients[y].numpy()]
    np.testing.assert_allclose(actual, slopes, rtol=1e-5, atol=1e-6)
