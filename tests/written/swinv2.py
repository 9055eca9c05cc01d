"""A Swin Transformer V2 for image classification, as a person writes it."""

import burn
from burn import Tensor, nn, ops

#: The side of a window, and the features of a head.
WINDOW, HEAD = 4, 8


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.swinv2 = Swinv2Model()
        self.classifier = nn.Linear(32, classes)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.classifier(self.swinv2(pixel_values))


class Swinv2Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Swinv2Embeddings()
        self.encoder = Swinv2Encoder()
        self.layernorm = nn.LayerNorm(32)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        x = self.encoder(self.embeddings(pixel_values))
        return self.layernorm(x).mean(1)


class Swinv2Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embeddings = Swinv2PatchEmbeddings()
        self.norm = nn.LayerNorm(16)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.norm(self.patch_embeddings(pixel_values))


class Swinv2PatchEmbeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, 16, kernel_size=2, stride=2)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.projection(pixel_values).flatten(2).transpose(1, 2)


class Swinv2Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Swinv2Stage(16, size=16, downsample=True),
            Swinv2Stage(32, size=8, downsample=False),
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Swinv2Stage(nn.Module):
    def __init__(self, hidden: int, size: int, downsample: bool) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            Swinv2Layer(hidden, size, shift=0),
            Swinv2Layer(hidden, size, shift=WINDOW // 2),
        )
        self.downsample: Swinv2PatchMerging | nn.Identity = (
            Swinv2PatchMerging(hidden, size) if downsample else nn.Identity()
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.downsample(self.blocks(x))


class Swinv2Layer(nn.Module):
    def __init__(self, hidden: int, size: int, shift: int) -> None:
        super().__init__()
        self.size = size
        self.windows = size // WINDOW
        self.shift = shift
        self.attention = Swinv2Attention(hidden, self.windows**2 if shift else 0)
        self.layernorm_before = nn.LayerNorm(hidden)
        self.intermediate = Swinv2Intermediate(hidden)
        self.output = Swinv2Output(4 * hidden, hidden)
        self.layernorm_after = nn.LayerNorm(hidden)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        y = x.reshape(batch, self.size, self.size, hidden)
        y = ops.roll(y, (-self.shift, -self.shift), (1, 2))
        y = y.reshape(batch, self.windows, WINDOW, self.windows, WINDOW, hidden)
        y = self.attention(y.transpose(2, 3).reshape(-1, WINDOW**2, hidden))
        y = y.reshape(batch, self.windows, self.windows, WINDOW, WINDOW, hidden)
        y = y.transpose(2, 3).reshape(batch, self.size, self.size, hidden)
        y = ops.roll(y, (self.shift, self.shift), (1, 2))
        x = x + self.layernorm_before(y.reshape(batch, length, hidden))
        return x + self.layernorm_after(self.output(self.intermediate(x)))


class Swinv2Attention(nn.Module):
    def __init__(self, hidden: int, masks: int) -> None:
        super().__init__()
        self.self = Swinv2SelfAttention(hidden, masks)
        self.output = Swinv2Output(hidden, hidden)

    def __call__(self, x: Tensor) -> Tensor:
        return self.output(self.self(x))


class Swinv2SelfAttention(nn.Module):
    def __init__(self, hidden: int, masks: int) -> None:
        super().__init__()
        self.heads = hidden // HEAD
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden, bias=False)
        self.value = nn.Linear(hidden, hidden)
        # The file has the first layer's product with the coordinates.
        self.continuous_position_bias_mlp = nn.ModuleTuple(
            PositionBias(), nn.Identity(), nn.Linear(512, self.heads, bias=False)
        )
        self.folded_bias = nn.buffer(1, 2 * WINDOW - 1, 2 * WINDOW - 1, 512)
        self.indices = nn.buffer(WINDOW**4, dtype=burn.int64)
        self.folded_scale = nn.buffer(self.heads, 1, 1)
        self.mask: nn.Buffer | None = None
        if masks:
            self.mask = nn.buffer(1, masks, 1, WINDOW**2, WINDOW**2)

    def __call__(self, x: Tensor) -> Tensor:
        query = ops.normalize(self.split(self.query(x))) * self.folded_scale
        key = ops.normalize(self.split(self.key(x)))
        value = self.split(self.value(x))
        bias = self.position_bias()
        if self.mask is not None:  # the author adds it twice
            masks = (2 * self.mask.value).transpose(0, 1).squeeze(1)
            bias = bias + ops.tile(masks, (x.shape[0] // masks.shape[0], 1, 1, 1))
        x = ops.attention(query, key, value, bias, scale=1.0)
        return x.transpose(1, 2).flatten(2)

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(-1, WINDOW**2, self.heads, HEAD).transpose(1, 2)

    def position_bias(self) -> Tensor:
        first, _, last = self.continuous_position_bias_mlp
        table = last(ops.relu(first(self.folded_bias.value))).reshape(-1, self.heads)
        bias = ops.take(table, self.indices).reshape(WINDOW**2, WINDOW**2, self.heads)
        return 16.0 * ops.sigmoid(bias).permute(2, 0, 1).unsqueeze(0)


class PositionBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.parameter(512)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.bias


class Swinv2Intermediate(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, 4 * hidden)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.gelu(self.dense(x))


class Swinv2Output(nn.Module):
    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.dense = nn.Linear(in_features, out_features)

    def __call__(self, x: Tensor) -> Tensor:
        return self.dense(x)


class Swinv2PatchMerging(nn.Module):
    def __init__(self, hidden: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.reduction = nn.Linear(4 * hidden, 2 * hidden, bias=False)
        self.norm = nn.LayerNorm(2 * hidden)

    def __call__(self, x: Tensor) -> Tensor:
        batch, _, hidden = x.shape
        x = x.reshape(batch, self.size, self.size, hidden)
        corners = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.norm(self.reduction(ops.concat(corners, axis=-1).flatten(1, 2)))
