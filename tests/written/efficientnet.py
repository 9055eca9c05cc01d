"""An EfficientNet for image classification, as a person writes it."""

from burn import Tensor, nn, ops

#: Channels before and after each block, its kernel and stride.
BLOCKS = (
    (8, 8, 3, 1),
    (8, 8, 3, 2),
    (8, 16, 5, 2),
    (16, 24, 3, 2),
    (24, 32, 5, 1),
    (32, 48, 5, 2),
    (48, 48, 5, 1),
    (48, 80, 3, 1),
)
#: Blocks that are no first ones of their stage.
REPEATED = (6,)


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.efficientnet = EfficientNetModel()
        self.classifier = nn.Linear(320, classes)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.classifier(self.efficientnet(pixel_values))


class EfficientNetModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = EfficientNetEmbeddings()
        self.encoder = EfficientNetEncoder()

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.encoder(self.embeddings(pixel_values)).mean((2, 3))


def same_padding(kernel_size: int, stride: int) -> tuple[tuple[int, int], ...]:
    after = kernel_size // 2
    before = after - 1 if stride == 2 else after
    return ((before, after), (before, after))


class EfficientNetEmbeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            3, 8, kernel_size=3, stride=2, padding=same_padding(3, 2)
        )

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return ops.silu(self.convolution(pixel_values))


class EfficientNetEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            *(
                EfficientNetBlock(*numbers, 6 if index else 1, index in REPEATED)
                for index, numbers in enumerate(BLOCKS)
            )
        )
        self.top_conv = nn.Conv2d(80, 320, kernel_size=1)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.silu(self.top_conv(self.blocks(x)))


class EfficientNetBlock(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        expand: int,
        residual: bool,
    ) -> None:
        super().__init__()
        channels = expand * in_channels
        self.residual = residual
        self.expansion: EfficientNetExpansionLayer | nn.Identity = nn.Identity()
        if expand > 1:
            self.expansion = EfficientNetExpansionLayer(in_channels, channels)
        self.depthwise_conv = EfficientNetDepthwiseLayer(channels, kernel_size, stride)
        self.squeeze_excite = EfficientNetSqueezeExcite(channels, in_channels // 4)
        self.projection = EfficientNetFinalBlockLayer(channels, out_channels)

    def __call__(self, x: Tensor) -> Tensor:
        y = self.squeeze_excite(self.depthwise_conv(self.expansion(x)))
        y = self.projection(y)
        return x + y if self.residual else y


class EfficientNetExpansionLayer(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.expand_conv = nn.Conv2d(in_channels, out_channels, kernel_size=1)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.silu(self.expand_conv(x))


class EfficientNetDepthwiseLayer(nn.Module):
    def __init__(self, channels: int, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.depthwise_conv = nn.Conv2d(
            channels,
            channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=same_padding(kernel_size, stride),
            groups=channels,
        )

    def __call__(self, x: Tensor) -> Tensor:
        return ops.silu(self.depthwise_conv(x))


class EfficientNetSqueezeExcite(nn.Module):
    def __init__(self, channels: int, reduced: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, reduced, kernel_size=1)
        self.expand = nn.Conv2d(reduced, channels, kernel_size=1)

    def __call__(self, x: Tensor) -> Tensor:
        gate = ops.silu(self.reduce(x.mean((2, 3), keepdims=True)))
        return x * ops.sigmoid(self.expand(gate))


class EfficientNetFinalBlockLayer(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.project_conv = nn.Conv2d(in_channels, out_channels, kernel_size=1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.project_conv(x)
