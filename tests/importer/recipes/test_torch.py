"""Networks of torchvision from their weights alone, against PyTorch itself.

torchvision is not needed: its networks are written in ``vision_references.py``, by the
keys that it publishes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from tests.importer.recipes.vision_references import REFERENCES, write_configuration

pytestmark = pytest.mark.torch


class TorchNet:
    """Network of PyTorch modules; ``modules`` has them by key."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.root = torch.nn.Module()
        torch.manual_seed(4)

    def layer(self, key: str, make: Any) -> Any:
        """Return the module at ``key``, created at first use."""
        module, *names = self.root, *key.split(".")
        for name in names[:-1]:
            if not hasattr(module, name):
                module.add_module(name, self.torch.nn.Module())
            module = getattr(module, name)
        if not hasattr(module, names[-1]):
            module.add_module(names[-1], make().eval())
        return getattr(module, names[-1])

    def conv(
        self,
        key: str,
        x: Any,
        size: tuple[int, int],
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> Any:
        options = {"padding": padding, "groups": groups, "bias": bias}
        nn = self.torch.nn

        def make() -> Any:
            result = nn.Conv2d(*size, kernel, stride, **options)
            result.weight.data.normal_(0, 1.5 * result.weight[0].numel() ** -0.5)
            return result

        return self.layer(key, make)(x)

    def norm(self, key: str, x: Any, size: int, eps: float = 1e-5) -> Any:
        def make() -> Any:
            result = self.torch.nn.BatchNorm2d(size, eps=eps)
            for values in (result.weight.data, result.running_var):
                values.uniform_(0.5, 1.2)
            for values in (result.bias.data, result.running_mean):
                values.normal_(0, 0.1)
            return result

        return self.layer(key, make)(x)

    def layer_norm(self, key: str, x: Any, size: int, eps: float) -> Any:
        return self.layer(key, lambda: self.torch.nn.LayerNorm(size, eps=eps))(x)

    def linear(self, key: str, x: Any, size: tuple[int, int]) -> Any:
        return self.layer(key, lambda: self.torch.nn.Linear(*size))(x)

    def attention(self, key: str, x: Any, size: int, heads: int) -> Any:
        attention = self.torch.nn.MultiheadAttention
        module = self.layer(key, lambda: attention(size, heads, batch_first=True))
        return module(x, x, x, need_weights=False)[0]

    def tensor(self, key: str, *shape: int) -> Any:
        path, _, name = key.rpartition(".")
        module = self.layer(path, self.torch.nn.Module) if path else self.root
        if not hasattr(module, name):
            value = self.torch.nn.Parameter(self.torch.randn(*shape) * 0.5)
            module.register_parameter(name, value)
        return getattr(module, name)

    def call(self, name: str, *operands: Any) -> Any:
        if name in ("add", "mul", "sigmoid"):
            return getattr(self.torch, name)(*operands)
        return getattr(self.torch.nn.functional, name)(*operands)

    def pool(self, kind: str, x: Any, kernel: int, stride: int, pad: int) -> Any:
        pools = self.torch.nn.functional
        word = {"max": pools.max_pool2d, "average": pools.avg_pool2d}[kind]
        return word(x, kernel, stride, pad)

    def adaptive(self, x: Any, size: int) -> Any:
        return self.torch.nn.functional.adaptive_avg_pool2d(x, size)

    def permute(self, x: Any, *axes: int) -> Any:
        return x.permute(*axes)

    def flatten(self, x: Any, axis: int) -> Any:
        return x.flatten(axis)

    def concat(self, values: Sequence[Any], axis: int) -> Any:
        return self.torch.cat(list(values), axis)

    def first(self, x: Any) -> Any:
        return x[:, 0]

    def before(self, first: Any, x: Any) -> Any:
        return self.torch.cat([first.expand(len(x), -1, -1), x], 1)


@pytest.mark.parametrize("name", REFERENCES)
def test_outputs_are_those_of_torch(name: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    reference, sizes = REFERENCES[name]
    net = TorchNet(torch)
    model: Any = None
    for size in sizes:
        x = np.random.default_rng(3).normal(size=(2, 3, *size)).astype(np.float32)
        with torch.no_grad():
            expected = reference(net, torch.from_numpy(x)).numpy()
        if model is None:
            path = tmp_path / "net.pth"
            torch.save(net.root.state_dict(), path)
            write_configuration(tmp_path, name)
            model = load(path)
        actual = model(burn.tensor(x)).numpy()
        assert np.abs(expected[0] - expected[1]).max() > 0.02
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
