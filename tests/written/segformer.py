"""A SegFormer for semantic segmentation, as a person writes it."""

from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.segformer = SegformerModel()
        self.decode_head = SegformerDecodeHead()

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.decode_head(self.segformer(pixel_values))


class SegformerModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            [
                SegformerStage(3, 8, 7, 4, 1, 8),
                SegformerStage(8, 16, 3, 2, 2, 4),
                SegformerStage(16, 24, 3, 2, 2, 2),
                SegformerStage(24, 32, 3, 2, 4, 1),
            ]
        )

    def __call__(self, pixel_values: Tensor) -> list[Tensor]:
        x = pixel_values
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return features


class SegformerStage(nn.Module):
    def __init__(
        self,
        in_channels: int,
        hidden: int,
        patch_size: int,
        stride: int,
        heads: int,
        reduction: int,
    ) -> None:
        super().__init__()
        self.patch_embeddings = SegformerOverlapPatchEmbeddings(
            in_channels, hidden, patch_size, stride
        )
        self.blocks = nn.ModuleList([SegformerLayer(hidden, heads, reduction)])
        self.layer_norm = nn.LayerNorm(hidden)

    def __call__(self, x: Tensor) -> Tensor:
        x, height, width = self.patch_embeddings(x)
        for block in self.blocks:
            x = block(x, height, width)
        x = self.layer_norm(x)
        return image(x, height, width)


def image(x: Tensor, height: int, width: int) -> Tensor:
    batch, _, channels = x.shape
    return x.transpose(1, 2).reshape(batch, channels, height, width)


class SegformerOverlapPatchEmbeddings(nn.Module):
    def __init__(
        self, in_channels: int, hidden: int, patch_size: int, stride: int
    ) -> None:
        super().__init__()
        self.proj = nn.Conv2d(
            in_channels,
            hidden,
            kernel_size=patch_size,
            stride=stride,
            padding=patch_size // 2,
        )
        self.layer_norm = nn.LayerNorm(hidden)

    def __call__(self, x: Tensor) -> tuple[Tensor, int, int]:
        x = self.proj(x)
        height, width = x.shape[2:]
        return self.layer_norm(x.flatten(2).transpose(1, 2)), height, width


class SegformerLayer(nn.Module):
    def __init__(self, hidden: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.layernorm_before = nn.LayerNorm(hidden)
        self.attention = SegformerAttention(hidden, heads, reduction)
        self.layernorm_after = nn.LayerNorm(hidden)
        self.mlp = SegformerMixMLP(hidden)

    def __call__(self, x: Tensor, height: int, width: int) -> Tensor:
        x = x + self.attention(self.layernorm_before(x), height, width)
        return x + self.mlp(self.layernorm_after(x), height, width)


class SegformerAttention(nn.Module):
    def __init__(self, hidden: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(hidden, hidden)
        self.k_proj = nn.Linear(hidden, hidden)
        self.v_proj = nn.Linear(hidden, hidden)
        self.o_proj = nn.Linear(hidden, hidden)
        self.sequence_reduction: SegformerSequenceReduction | None = None
        if reduction > 1:
            self.sequence_reduction = SegformerSequenceReduction(hidden, reduction)

    def __call__(self, x: Tensor, height: int, width: int) -> Tensor:
        query = self.split(self.q_proj(x))
        states = x
        if self.sequence_reduction is not None:
            states = self.sequence_reduction(x, height, width)
        key = self.split(self.k_proj(states))
        value = self.split(self.v_proj(states))
        y = ops.attention(query, key, value).transpose(1, 2)
        return self.o_proj(y.reshape(*x.shape))

    def split(self, x: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        x = x.reshape(batch, length, self.heads, hidden // self.heads)
        return x.transpose(1, 2)


class SegformerSequenceReduction(nn.Module):
    def __init__(self, hidden: int, reduction: int) -> None:
        super().__init__()
        self.sequence_reduction = nn.Conv2d(
            hidden, hidden, kernel_size=reduction, stride=reduction
        )
        self.layer_norm = nn.LayerNorm(hidden)

    def __call__(self, x: Tensor, height: int, width: int) -> Tensor:
        x = self.sequence_reduction(image(x, height, width))
        return self.layer_norm(x.flatten(2).transpose(1, 2))


class SegformerMixMLP(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(hidden, 2 * hidden)
        self.dwconv = SegformerDepthWiseConv(2 * hidden)
        self.fc2 = nn.Linear(2 * hidden, hidden)

    def __call__(self, x: Tensor, height: int, width: int) -> Tensor:
        return self.fc2(ops.gelu(self.dwconv(self.fc1(x), height, width)))


class SegformerDepthWiseConv(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(
            channels, channels, kernel_size=3, padding=1, groups=channels
        )

    def __call__(self, x: Tensor, height: int, width: int) -> Tensor:
        return self.dwconv(image(x, height, width)).flatten(2).transpose(1, 2)


class SegformerDecodeHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_projections = nn.ModuleList(
            SegformerMLP(channels) for channels in (8, 16, 24, 32)
        )
        self.linear_fuse = nn.Conv2d(64, 16, kernel_size=1)
        self.classifier = nn.Conv2d(16, 4, kernel_size=1)

    def __call__(self, features: list[Tensor]) -> Tensor:
        size = features[0].shape[2:]
        projected = []
        for feature, projection in zip(features, self.linear_projections, strict=True):
            x = image(projection(feature), *feature.shape[2:])
            sizes = [*x.shape[:2], *size]
            projected.append(ops.resize(x, None, sizes, mode="linear"))
        x = self.linear_fuse(ops.concat(projected[::-1], axis=1))
        return self.classifier(ops.relu(x))


class SegformerMLP(nn.Module):
    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.proj = nn.Linear(in_channels, 16)

    def __call__(self, x: Tensor) -> Tensor:
        return self.proj(x.flatten(2).transpose(1, 2))
