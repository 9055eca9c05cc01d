# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 9527b7c13079dcfcb33fa91e13dbb04d8c497aac22ab7393973c68ddbde7b49d
# record sha256 0ee4f7c26fdf1ef4a2515dad3f463332da5aaf7a782e61d1a35ff3cd46cb09c6
# body   sha256 dff57a6f02ab5a6ed0807ecaf52b85368c426c3fb7c66891da37d61f6731b891
"""Net: ids -> scores.

Outputs:
    scores  float32[batch, 4]

Weights (156 numbers) are next to this file, in
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

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6, eps=1e-12)
        self.head = nn.Linear(6, classes, bias=False)
        self.positions = Positions()

    @nn.check_inputs(ids="int64[batch, length]")
    def __call__(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        picked = self.norm(self.tokens(ids) + self.positions.weight[:length])[:, -1]
        return self.head(picked)


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.parameter(9, 6)
