# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 ffcc5f60ebf67be421b02337ffad1d33765f49887ab35bee80dbc45d85f752c0
# record sha256 7e51f0ef6e6d4eaf75df4454d6a3168cad54f161b97b2ac91c9ee419de4bcf76
# body   sha256 4c29cb7f30e1df5757b06a79d3ac799f4aaefc517928dcdef5888f9dbc42dbc6
"""Net: image -> pooled.

Outputs:
    pooled  float32[batch, 4, (height + 1) // 2, (width + 5) // 4]

Weights (128 numbers) are next to this file, in
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
        self.first = nn.Conv2d(
            2, 4, kernel_size=(3, 2), stride=(1, 2), padding=((0, 2), (1, 0))
        )
        self.second = nn.Conv2d(
            4, 4, kernel_size=3, stride=(2, 1), padding="same_upper", groups=2
        )

    @nn.check_inputs(image="float32[batch, 2, height, width]")
    def __call__(self, image: Tensor) -> Tensor:
        second = self.second(ops.relu(self.first(image)))
        return ops.max_pool(
            ops.leaky_relu(second, alpha=0.1),
            kernel_size=(2, 3),
            stride=(1, 2),
            padding=((0, 1), (1, 1)),
            ceil_mode=True,
        )
