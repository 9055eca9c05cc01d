# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 adaa701d962dd934df2ce2adc464dc8fd6b7e1e3aaca2362a8ba24d0bdb77b31
# record sha256 aad15c54704e8f4f76cef7d80979e3c7d5013dfc3f8a7a47a1976975e59a3520
# body   sha256 4a2541432f40d37301f09312cd90c499e4fc5c7cfa98b8dc6dd38d6bbab6d523
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
        self.b = nn.parameter(3)

    @nn.check_inputs(self_x="float32[def_, 3]")
    def __call__(self, self_x: Tensor) -> Tensor:
        return self.a(self_x * self.b)


class PartA(nn.Module):
    """``a``: [def_, 3] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.parameter(3)
        self.a_b = nn.parameter(3)
        self.b2 = nn.parameter(3)
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

    def __call__(self, x: Tensor) -> Tensor:
        x = (((x + self.b) * self.a_b + self.b2) * self.class_ + self.bias) * self.burn
        x = ((x + self.print) * self.weight + self.load_) * self.state_dict_ + self.x
        return (x * self.ops + self.WEIGHTS_) * self.scale
