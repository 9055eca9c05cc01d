"""Random networks whose output is sliced train as eager calls do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops, optim, train
from tests.runtime.onednn import normal

WIDTH = 4


def attended(x: Any) -> Any:
    batch, length, _ = x.shape
    heads = ops.permute(ops.reshape(x, (batch, length, 2, 2)), (0, 2, 1, 3))
    mixed = ops.softmax(heads @ heads.mT) @ heads
    return ops.reshape(ops.permute(mixed, (0, 2, 1, 3)), x.shape)


#: What a layer does with its linear layer, the norm of the network and the input.
LAYERS: tuple[Callable[[Any, Any, Any, Any], Any], ...] = (
    lambda x, layer, norm, first: layer(x),
    lambda x, layer, norm, first: x + first,
    lambda x, layer, norm, first: norm(x),
    lambda x, layer, norm, first: ops.softmax(x @ layer(x).mT) @ x,
    lambda x, layer, norm, first: ops.reshape(
        layer(ops.reshape(x, (-1, WIDTH))), x.shape
    ),
    lambda x, layer, norm, first: attended(x),
    lambda x, layer, norm, first: ops.gelu(x) * first,
    lambda x, layer, norm, first: ops.relu(x) + ops.mean(x, 1, keepdims=True),
    lambda x, layer, norm, first: ops.tanh(layer(x)).mT.mT,
    lambda x, layer, norm, first: x / (1.0 + ops.exp(-layer(x))),
)
SLICES: tuple[Callable[[Any], Any], ...] = (
    lambda x: x[:, 1],
    lambda x: x[:, -2:],
    lambda x: x[0],
    lambda x: x[:, -1] * x[:, 0],
    lambda x: x[..., 1],
    lambda x: x[:, 1:2],
)


class Net(nn.Module):
    def __init__(self, seed: int) -> None:
        nn.init.seed(seed)
        chosen = np.random.default_rng(seed)
        self.steps = [0, *chosen.integers(0, len(LAYERS), 6).tolist()]
        self.slice = SLICES[seed % len(SLICES)]
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in self.steps])
        self.norm = nn.LayerNorm(WIDTH)

    def __call__(self, x: Any) -> Any:
        first = x
        for kind, layer in zip(self.steps, self.layers, strict=True):
            x = LAYERS[kind](x, layer, self.norm, first)
        return self.slice(x)


def trained(seed: int, compiled: bool) -> tuple[list[Any], dict[str, Any]]:
    """The losses of three steps, and the weights after them."""
    net = Net(seed).to(Autodiff(Cpu()))
    shape = (2 + seed % 3, 4 + seed % 2, WIDTH)

    @train.step(net, optim.SGD(net, lr=0.05), compiled=compiled)
    def step(x: Any) -> Any:
        return ops.mean(net(x) ** 2.0)

    losses = [step(burn.from_numpy(normal(*shape, seed=i))).numpy() for i in range(3)]
    return losses, {path: box.value.numpy() for path, box in net.parameters()}


@pytest.mark.parametrize("seed", range(24))
def test_training(seed: int) -> None:
    losses, weights = trained(seed, True)
    expected_losses, expected = trained(seed, False)
    np.testing.assert_allclose(losses, expected_losses, 1e-4, 1e-5)
    for path, value in weights.items():
        np.testing.assert_allclose(value, expected[path], 1e-3, 2e-4, err_msg=path)
