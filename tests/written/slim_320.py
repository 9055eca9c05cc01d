"""A face detector with four scales of boxes (slim-320), as a person writes it."""

from burn import Tensor, nn, ops

#: Channels before and after each separable block of the trunk, and its stride.
BLOCKS = (
    (16, 32, 1),
    (32, 32, 2),
    (32, 32, 1),
    (32, 64, 2),
    (64, 64, 1),
    (64, 64, 1),
    (64, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
)
#: The trunk's blocks in front of each of the first three scales.
SCALES = ((0, 8), (8, 11), (11, 13))
BOXES = 4420


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = nn.Sequential(
            nn.Conv2d(3, 16, kernel_size=3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(16),
            ops.relu,
        )
        self.base_net = nn.ModuleList([stem, *(separable(*one) for one in BLOCKS)])
        self.classification_headers = headers(2)
        self.regression_headers = headers(4)
        self.extras = nn.ModuleList([Extra()])
        self.scale = nn.buffer(1, BOXES, 2)
        self.bias = nn.buffer(1, BOXES, 2)
        self.scale2 = nn.buffer(1, BOXES, 2)

    def __call__(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = image
        features = []
        for start, stop in SCALES:
            for block in self.base_net[start:stop]:
                x = block(x)
            features.append(x)
        features.append(self.extras[0](x))
        scores = predictions(self.classification_headers, features, 2)
        offsets = predictions(self.regression_headers, features, 4)
        centers = 0.1 * offsets[:, :, :2] * self.scale + self.bias
        half = ops.exp(0.2 * offsets[:, :, 2:]) * self.scale2 / 2.0
        boxes = ops.concat([centers - half, centers + half], axis=2)
        return ops.softmax(scores), boxes


def predictions(
    heads: nn.ModuleList[nn.Sequential | nn.Conv2d], features: list[Tensor], size: int
) -> Tensor:
    results = []
    for head, feature in zip(heads, features, strict=True):
        result = head(feature).permute(0, 2, 3, 1)
        results.append(result.reshape(result.shape[0], -1, size))
    return ops.concat(results, axis=1)


def separable(in_channels: int, out_channels: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(
            in_channels,
            in_channels,
            kernel_size=3,
            stride=stride,
            padding=1,
            groups=in_channels,
            bias=False,
        ),
        nn.BatchNorm2d(in_channels),
        ops.relu,
        nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
        ops.relu,
    )


def headers(size: int) -> nn.ModuleList[nn.Sequential | nn.Conv2d]:
    return nn.ModuleList(
        [
            header(64, 3 * size),
            header(128, 2 * size),
            header(256, 2 * size),
            nn.Conv2d(256, 3 * size, kernel_size=3, padding=1),
        ]
    )


def header(channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels),
        ops.relu,
        nn.Conv2d(channels, out_channels, kernel_size=1),
    )


class Extra(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(256, 64, kernel_size=1),
            ops.relu,
            nn.Sequential(
                nn.Conv2d(64, 64, kernel_size=3, stride=2, padding=1, groups=64),
                ops.relu,
                nn.Conv2d(64, 256, kernel_size=1),
                ops.relu,
            ),
        )
