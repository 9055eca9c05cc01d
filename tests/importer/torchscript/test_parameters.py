"""Parameters that modules other than their owner read."""

from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn_import import load
from tests.importer.script_files import Script, example, module, weight

CODE = """class Block(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  def forward(self: __torch__.Block,
    h: Tensor,
    z: Tensor) -> Tensor:
    h0 = torch.sigmoid(torch.mul(h, self.weight))
    _0 = ops.prim.NumToTensor(torch.size(h0, 0))
    h1 = torch.div(h0, int(_0))
    h2 = torch.add(h1, z)
    return torch.mul(h2, self.weight)
class Net(Module):
  __parameters__ = ["latents", ]
  __buffers__ = []
  latents : Tensor
  training : bool
  first : __torch__.Block
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    first = self.first
    _0 = ops.prim.NumToTensor(torch.size(x, 0))
    z = torch.unsqueeze(self.latents, 0)
    z0 = torch.expand(z, [int(_0), 2, 4])
    h = torch.mul(torch.reshape(x, [int(_0), 2, 4]), z0)
    return (first).forward(h, z0, )
"""


def test_a_view_of_a_parameter_of_the_module_around(tmp_path: Path) -> None:
    """A small parameter is no literal where another module adds it: it is trained."""
    (latents, stored), (factor, w) = weight("0", 2, 4), weight("1", 4, seed=1)
    root = module("Net", latents=stored, first=module("Block", weight=w))
    script = Script(root, {"__torch__.py": CODE}, [example("Float", 3, 8)])
    model: Any = load(script.saved(tmp_path))
    assert set(model.state_dict()) == {"latents", "first.weight"}
    x = np.random.default_rng(2).normal(size=(5, 8)).astype(np.float32)
    for scale in (1, 3):
        z = latents * np.float32(scale)
        model.load_state_dict({"latents": z, "first.weight": factor})
        h = 1 / (1 + np.exp(-x.reshape(5, 2, 4) * z * factor)) / 5 + z
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, h * factor, rtol=1e-4, atol=1e-5)
