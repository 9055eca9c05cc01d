# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 07389fcb3775eacd75307846e12d6e993a39e84431a5af8701551282612060aa
# body   sha256 8593c36c3c9e0d8b3d7f4ae5e0db37a33d9a417aaf23ab6b8959a8525bc52977
"""Net: in_put -> out_put.

Inputs:
    in_put  float32[2, 3]

Outputs:
    out_put  float32[2, 3]

Weights (24 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import Self

import burn
from burn import Tensor, nn, ops

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quote_import_os = nn.parameter(3)
        self.utf_7 = nn.parameter(3)
        self.right_to_left = nn.parameter(3)
        self.line_break_zero = nn.parameter(3)
        self.n_bullet_x = nn.parameter(3)
        self.ete = nn.parameter(3)
        self.ignore = nn.parameter(3)
        self.class_ = nn.parameter(3)

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, in_put: Tensor) -> Tensor:
        right_to_left2 = in_put + self.quote_import_os + self.utf_7 + self.right_to_left
        n_bullet_x_4 = right_to_left2 + self.line_break_zero + self.n_bullet_x
        return ops.tanh(n_bullet_x_4 + self.ete + self.ignore + self.class_)
