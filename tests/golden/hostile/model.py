# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 07389fcb3775eacd75307846e12d6e993a39e84431a5af8701551282612060aa
# record sha256 0b80f7bb2efc285bb50c2a9a95015d298bd235398fafae23a099279b8a12f1f5
# body   sha256 e1424ab82a6663e89f479ae18fa2340081bc80d6d260e2a28bc6ec7ecee40e06
"""Net: in_put -> out_put.

Outputs:
    out_put  float32[2, 3]

Weights (24 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path

import burn
from burn import Tensor, nn, ops

burn.require_version("0.1.0")


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.quote_import_os = nn.parameter(3)
        self.utf_7 = nn.parameter(3)
        self.right_to_left = nn.parameter(3)
        self.line_break_zero = nn.parameter(3)
        self.N_BULLET_x = nn.parameter(3)
        self.ete = nn.parameter(3)
        self.ignore = nn.parameter(3)
        self.class_ = nn.parameter(3)

    @nn.check_inputs(in_put="float32[2, 3]")
    def __call__(self, in_put: Tensor) -> Tensor:
        right_to_left = in_put + self.quote_import_os + self.utf_7 + self.right_to_left
        ete = right_to_left + self.line_break_zero + self.N_BULLET_x + self.ete
        return ops.tanh(ete + self.ignore + self.class_)
