# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 adaa701d962dd934df2ce2adc464dc8fd6b7e1e3aaca2362a8ba24d0bdb77b31
# record sha256 1d28c24afa76b53eb8b6de4931b199362f322e1ac36ff5cde25138c46708136f
# body   sha256 af17c122d9e8d268bf190ba03c134b5237c6069c9e35a01976d7aa202f3093d0
"""Net: self_x -> return_.

Outputs:
    return_  float32[def_, 3]

Weights (45 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path

import burn
from burn import Tensor, nn

burn.require_version("0.1.0")


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.a = PartA()

    @nn.check_inputs(self_x="float32[def_, 3]")
    def __call__(self, self_x: Tensor) -> Tensor:
        return self.a(self_x)


class PartA(nn.Module):
    """``a``: [def_, 3] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.parameter(3)
        self.b2 = nn.parameter(3)
        self.a_b = nn.parameter(3)
        self.b3 = nn.parameter(3)
        self.class_ = nn.parameter(3)
        self.bias = nn.parameter(3)
        self.burn = nn.parameter(3)
        self.print = nn.parameter(3)
        self.weight = nn.parameter(3)
        self.load_ = nn.parameter(3)
        self.state_dict_ = nn.parameter(3)
        self.x = nn.parameter(3)
        self.ops = nn.parameter(3)
        self.WEIGHTS_ = nn.parameter(3)
        self.scale = nn.parameter(3)

    def __call__(self, self_x: Tensor) -> Tensor:
        x = ((self_x * self.b + self.b2) * self.a_b + self.b3) * self.class_ + self.bias
        x = ((x * self.burn + self.print) * self.weight + self.load_) * self.state_dict_
        return ((x + self.x) * self.ops + self.WEIGHTS_) * self.scale
