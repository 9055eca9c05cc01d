# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 adaa701d962dd934df2ce2adc464dc8fd6b7e1e3aaca2362a8ba24d0bdb77b31
# record sha256 1a4df5ccace752c149a3360bd4ba1af1bb9cff0000826f1947a87102649eef0f
# body   sha256 e51009e99556bc54ef4606cd932c2dc91ce441513735a3a1c1a0c8b4b185478c
"""Net: self_x -> return_.

Outputs:
    return_  float32[def_, 3]

Weights (45 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import Self

import burn
from burn import Tensor, nn

burn.require_version("0.1.0")

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = PartA()
        self.b = nn.parameter(3)

    @classmethod
    def load(
        cls,
        weights: str | Path = WEIGHTS,
        backend: burn.Backend | None = None,
        *,
        verify: bool = False,
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend, verify=verify)

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
        self.WEIGHTS = nn.parameter(3)
        self.scale = nn.parameter(3)

    def __call__(self, x: Tensor) -> Tensor:
        x = (((x + self.b) * self.a_b + self.b2) * self.class_ + self.bias) * self.burn
        x = ((x + self.print) * self.weight + self.load_) * self.state_dict_ + self.x
        return (x * self.ops + self.WEIGHTS) * self.scale
