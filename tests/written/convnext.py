"""A ConvNeXt for image classification, as a person writes it."""

from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.convnext = ConvNextModel()
        self.classifier = nn.Linear(32, 5)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.classifier(self.convnext(pixel_values))


class ConvNextModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = ConvNextEmbeddings()
        self.encoder = ConvNextEncoder()
        self.layernorm = nn.LayerNorm(32, eps=1e-12)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        x = self.encoder(self.embeddings(pixel_values))
        return self.layernorm(x.mean((-2, -1)))


class ConvNextEmbeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embeddings = nn.Conv2d(3, 8, kernel_size=4, stride=4)
        self.layernorm = nn.LayerNorm(8, eps=1e-6)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        x = self.patch_embeddings(pixel_values).permute(0, 2, 3, 1)
        return self.layernorm(x).permute(0, 3, 1, 2)


class ConvNextEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            [
                ConvNextStage(8, 8, depth=1),
                ConvNextStage(8, 16, depth=1),
                ConvNextStage(16, 24, depth=2),
                ConvNextStage(24, 32, depth=1),
            ]
        )

    def __call__(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            x = stage(x)
        return x


class ConvNextStage(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, depth: int) -> None:
        super().__init__()
        self.downsampling_layer: nn.ModuleTuple[nn.LayerNorm, nn.Conv2d] | None = None
        if in_channels != out_channels:
            self.downsampling_layer = nn.ModuleTuple(
                nn.LayerNorm(in_channels, eps=1e-6),
                nn.Conv2d(in_channels, out_channels, kernel_size=2, stride=2),
            )
        self.layers = nn.ModuleList(ConvNextLayer(out_channels) for _ in range(depth))

    def __call__(self, x: Tensor) -> Tensor:
        if self.downsampling_layer is not None:
            x = self.downsampling_layer[0](x.permute(0, 2, 3, 1))
            x = self.downsampling_layer[1](x.permute(0, 3, 1, 2))
        for layer in self.layers:
            x = layer(x)
        return x


class ConvNextLayer(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(
            channels, channels, kernel_size=7, padding=3, groups=channels
        )
        self.layernorm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)
        self.layer_scale_parameter = nn.parameter(channels)

    def __call__(self, x: Tensor) -> Tensor:
        residual = x
        x = self.layernorm(self.dwconv(x).permute(0, 2, 3, 1))
        x = self.pwconv2(ops.gelu(self.pwconv1(x)))
        x = self.layer_scale_parameter * x
        return residual + x.permute(0, 3, 1, 2)
