# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 9527b7c13079dcfcb33fa91e13dbb04d8c497aac22ab7393973c68ddbde7b49d
# record sha256 0ee4f7c26fdf1ef4a2515dad3f463332da5aaf7a782e61d1a35ff3cd46cb09c6
# body   sha256 b6a519c751e41f7c29375ad2e6438634f46f8fba22ac442d284bea552ba63643
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
    record_names = {"positions": "positions.weight"}

    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6, eps=1e-12)
        self.head = nn.Linear(6, classes, bias=False)
        self.positions = nn.parameter(9, 6)

    @nn.check_inputs(ids="int64[batch, length]")
    def __call__(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        picked = self.norm(self.tokens(ids) + self.positions[:length])[:, -1]
        return self.head(picked)
