"""The encoder of T5, as a person writes it."""

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.encoder = T5Stack()

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.encoder(input_ids, attention_mask)


class T5Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(99, 32)
        self.block = nn.ModuleList(T5Block(i == 0) for i in range(2))
        self.final_layer_norm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        visible = attention_mask.cast(burn.bool_).unsqueeze((1, 2))
        bias = ops.where(visible, 0.0, -3.4028235e38)
        x = self.embed_tokens(input_ids)
        for block in self.block:
            x, bias = block(x, bias)
        return self.final_layer_norm(x)


class T5Block(nn.Module):
    def __init__(self, has_relative_bias: bool) -> None:
        super().__init__()
        self.layer = nn.ModuleTuple(
            T5LayerSelfAttention(has_relative_bias), T5LayerFF()
        )

    def __call__(self, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        x, bias = self.layer[0](x, bias)
        return self.layer[1](x), bias


class T5LayerSelfAttention(nn.Module):
    def __init__(self, has_relative_bias: bool) -> None:
        super().__init__()
        self.SelfAttention = T5Attention(has_relative_bias)
        self.layer_norm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        y, bias = self.SelfAttention(self.layer_norm(x), bias)
        return x + y, bias


class T5Attention(nn.Module):
    def __init__(self, has_relative_bias: bool) -> None:
        super().__init__()
        self.q = nn.Linear(32, 32, bias=False)
        self.k = nn.Linear(32, 32, bias=False)
        self.v = nn.Linear(32, 32, bias=False)
        self.o = nn.Linear(32, 32, bias=False)
        self.relative_attention_bias: nn.Embedding | None = None
        if has_relative_bias:
            self.relative_attention_bias = nn.Embedding(8, 4)

    def __call__(self, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        batch, seq = x.shape[:2]
        if self.relative_attention_bias is not None:
            relative = self.relative_attention_bias(self.buckets(seq))
            bias = bias + relative.permute(2, 0, 1).unsqueeze(0)
        query = self.q(x).reshape(batch, seq, 4, 8).transpose(1, 2)
        key = self.k(x).reshape(batch, seq, 4, 8).transpose(1, 2)
        value = self.v(x).reshape(batch, seq, 4, 8).transpose(1, 2)
        x = ops.attention(query, key, value, bias, scale=1.0)
        return self.o(x.transpose(1, 2).reshape(batch, seq, 32)), bias

    def buckets(self, seq: int) -> Tensor:
        positions = ops.arange(seq)
        distance = positions.unsqueeze(0) - positions.unsqueeze(1)
        side = (distance > 0).cast(burn.int64) * 4
        distance = ops.abs(distance)
        far = ops.log(distance.cast(burn.float32) / 2.0) / 4.158883 * 2.0
        far = ops.minimum(far.cast(burn.int64) + 2, 3)
        return side + ops.where(distance < 2, distance, far)


class T5LayerFF(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.DenseReluDense = T5DenseActDense()
        self.layer_norm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.DenseReluDense(self.layer_norm(x))


class T5DenseActDense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wi = nn.Linear(32, 48, bias=False)
        self.wo = nn.Linear(48, 32, bias=False)

    def __call__(self, x: Tensor) -> Tensor:
        return self.wo(ops.relu(self.wi(x)))
