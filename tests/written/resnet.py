"""A residual CNN (bottleneck blocks) for classification, as a person writes it."""

from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.resnet = ResNetModel()
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(32, 5))

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.classifier(self.resnet(pixel_values).flatten(1))


class ResNetModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedder = ResNetEmbeddings(3, 8)
        self.encoder = ResNetEncoder()

    def __call__(self, x: Tensor) -> Tensor:
        return self.encoder(self.embedder(x)).mean((-1, -2), keepdims=True)


class ResNetConvLayer(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        activation: bool = True,
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            in_channels,
            out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=kernel_size // 2,
        )
        self.activation = activation

    def __call__(self, x: Tensor) -> Tensor:
        x = self.convolution(x)
        return ops.relu(x) if self.activation else x


class ResNetEmbeddings(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.embedder = ResNetConvLayer(in_channels, out_channels, 7, stride=2)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.max_pool(self.embedder(x), kernel_size=3, stride=2, padding=1)


class ResNetEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            [
                ResNetStage(8, 8, depth=1, stride=1),
                ResNetStage(8, 16, depth=1),
                ResNetStage(16, 24, depth=2),
                ResNetStage(24, 32, depth=1),
            ]
        )

    def __call__(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            x = stage(x)
        return x


class ResNetStage(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, depth: int, stride: int = 2
    ) -> None:
        super().__init__()
        first = ResNetBottleNeckLayer(in_channels, out_channels, stride)
        rest = [
            ResNetBottleNeckLayer(out_channels, out_channels) for _ in range(depth - 1)
        ]
        self.layers = nn.ModuleList([first, *rest])

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class ResNetBottleNeckLayer(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        reduced = out_channels // 4
        self.shortcut: ResNetConvLayer | None = None
        if in_channels != out_channels or stride != 1:
            self.shortcut = ResNetConvLayer(
                in_channels, out_channels, 1, stride, activation=False
            )
        self.layer = nn.Sequential(
            ResNetConvLayer(in_channels, reduced, 1),
            ResNetConvLayer(reduced, reduced, 3, stride),
            ResNetConvLayer(reduced, out_channels, 1, activation=False),
        )

    def __call__(self, x: Tensor) -> Tensor:
        residual = x if self.shortcut is None else self.shortcut(x)
        return ops.relu(self.layer(x) + residual)
