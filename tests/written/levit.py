"""A LeViT for image classification, as a person writes it."""

from collections.abc import Callable

from burn import Tensor, nn, ops

#: Features of keys of one head.
KEY = 8


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.levit = LevitModel()
        self.classifier = LevitClassificationLayer(classes)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.classifier(self.levit(pixel_values).mean(1))


class LevitModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embeddings = LevitPatchEmbeddings()
        self.encoder = LevitEncoder()

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.encoder(self.patch_embeddings(pixel_values))


class LevitPatchEmbeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding_layer_1 = LevitConvEmbeddings(3, 2)
        self.embedding_layer_2 = LevitConvEmbeddings(2, 4)
        self.embedding_layer_3 = LevitConvEmbeddings(4, 8)
        self.embedding_layer_4 = LevitConvEmbeddings(8, 16)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        x = ops.hard_swish(self.embedding_layer_1(pixel_values))
        x = ops.hard_swish(self.embedding_layer_2(x))
        x = ops.hard_swish(self.embedding_layer_3(x))
        return self.embedding_layer_4(x).flatten(2).transpose(1, 2)


class LevitConvEmbeddings(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            in_channels, out_channels, kernel_size=3, stride=2, padding=1
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.convolution(x)


class LevitEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.Sequential(
            LevitStage(16, heads=2, size=4, out_features=24),
            LevitStage(24, heads=3, size=2, out_features=32),
            LevitStage(32, heads=4, size=1),
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.stages(x)


class LevitStage(nn.Module):
    def __init__(
        self, hidden: int, heads: int, size: int, out_features: int | None = None
    ) -> None:
        super().__init__()
        layers: list[Callable[[Tensor], Tensor]] = [
            LevitResidualLayer(LevitAttention(hidden, heads, size)),
            LevitResidualLayer(LevitMLPLayer(hidden)),
        ]
        if out_features is not None:
            layers.append(LevitAttentionSubsample(hidden, heads, size, out_features))
            layers.append(LevitResidualLayer(LevitMLPLayer(out_features)))
        self.layers = nn.Sequential(*layers)

    def __call__(self, x: Tensor) -> Tensor:
        return self.layers(x)


class LevitResidualLayer(nn.Module):
    def __init__(self, module: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.module = module

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.module(x)


class LevitMLPLayer(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear_up = MLPLayerWithBN(hidden, 2 * hidden)
        self.linear_down = MLPLayerWithBN(2 * hidden, hidden)

    def __call__(self, x: Tensor) -> Tensor:
        return self.linear_down(ops.hard_swish(self.linear_up(x)))


class MLPLayerWithBN(nn.Module):
    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=False)
        self.batch_norm = nn.BatchNorm1d(out_features)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        return self.batch_norm(x.flatten(0, 1)).reshape(*x.shape)


class LevitAttention(nn.Module):
    def __init__(self, hidden: int, heads: int, size: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries_keys_values = MLPLayerWithBN(hidden, 4 * KEY * heads)
        self.projection = MLPLayerWithBN(2 * KEY * heads, hidden)
        self.folded_bias = nn.buffer(heads, size**2, size**2)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        x = self.queries_keys_values(x).reshape(batch, length, self.heads, 4 * KEY)
        query, key, value = ops.split(x.transpose(1, 2), (KEY, KEY, 2 * KEY), axis=3)
        x = ops.attention(query, key, value, self.folded_bias)
        return self.projection(ops.hard_swish(x.transpose(1, 2).flatten(2)))


class LevitAttentionSubsample(nn.Module):
    def __init__(self, hidden: int, heads: int, size: int, out_features: int) -> None:
        super().__init__()
        self.heads = heads
        self.size = size
        self.keys_values = MLPLayerWithBN(hidden, 5 * KEY * heads)
        self.queries = MLPLayerWithBN(hidden, KEY * heads)
        self.projection = MLPLayerWithBN(4 * KEY * heads, out_features)
        self.folded_bias = nn.buffer(heads, size**2 // 4, size**2)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        y = self.keys_values(x).reshape(batch, length, self.heads, 5 * KEY)
        key, value = ops.split(y.transpose(1, 2), (KEY, 4 * KEY), axis=3)
        x = x.reshape(batch, self.size, self.size, hidden)[:, ::2, ::2].flatten(1, 2)
        query = self.queries(x).reshape(batch, length // 4, self.heads, KEY)
        x = ops.attention(query.transpose(1, 2), key, value, self.folded_bias)
        return self.projection(ops.hard_swish(x.transpose(1, 2).flatten(2)))


class LevitClassificationLayer(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.batch_norm = nn.BatchNorm1d(32)
        self.linear = nn.Linear(32, classes)

    def __call__(self, x: Tensor) -> Tensor:
        return self.linear(self.batch_norm(x))
