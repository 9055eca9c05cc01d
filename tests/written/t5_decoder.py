"""The decoder of T5 with its head, as a person writes it."""

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(99, 32)
        self.decoder = T5Stack()
        self.lm_head = nn.Linear(32, 99, bias=False)
        self.lm_head.weight = self.shared.weight

    def __call__(
        self,
        decoder_input_ids: Tensor,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor,
    ) -> Tensor:
        x = self.shared(decoder_input_ids)
        x = self.decoder(x, encoder_hidden_states, attention_mask)
        return self.lm_head(x * 32**-0.5)


class T5Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.ModuleList(T5Block(i == 0) for i in range(2))
        self.final_layer_norm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, x: Tensor, encoded: Tensor, mask: Tensor) -> Tensor:
        positions = ops.arange(x.shape[1])
        causal = positions.unsqueeze(0) <= positions.unsqueeze(1)
        bias = ops.where(causal, 0.0, -3.4028235e38)
        visible = mask.cast(burn.bool_).unsqueeze((1, 2))
        for block in self.block:
            x, bias = block(x, bias, encoded, visible)
        return self.final_layer_norm(x)


class T5Block(nn.Module):
    def __init__(self, has_relative_bias: bool) -> None:
        super().__init__()
        self.layer = nn.ModuleTuple(
            T5LayerSelfAttention(has_relative_bias),
            T5LayerCrossAttention(),
            T5LayerFF(),
        )

    def __call__(
        self, x: Tensor, bias: Tensor, encoded: Tensor, visible: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, bias = self.layer[0](x, bias)
        x = self.layer[1](x, encoded, visible)
        return self.layer[2](x), bias


class T5LayerSelfAttention(nn.Module):
    def __init__(self, has_relative_bias: bool) -> None:
        super().__init__()
        self.SelfAttention = T5Attention(has_relative_bias)
        self.layer_norm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer_norm(x)
        if self.SelfAttention.relative_attention_bias is not None:
            bias = bias + self.SelfAttention.relative_bias(x.shape[1])
        return x + self.SelfAttention(y, y, bias), bias


class T5LayerCrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.EncDecAttention = T5Attention(False)
        self.layer_norm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, x: Tensor, encoded: Tensor, visible: Tensor) -> Tensor:
        return x + self.EncDecAttention(self.layer_norm(x), encoded, visible)


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

    def __call__(self, x: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        query = self.q(x).reshape(batch, length, 4, 8).transpose(1, 2)
        key = self.k(states).reshape(batch, -1, 4, 8).transpose(1, 2)
        value = self.v(states).reshape(batch, -1, 4, 8).transpose(1, 2)
        x = ops.attention(query, key, value, mask, scale=1.0)
        return self.o(x.transpose(1, 2).reshape(batch, length, 32))

    def relative_bias(self, length: int) -> Tensor:
        assert self.relative_attention_bias is not None
        positions = ops.arange(length)
        distance = positions.unsqueeze(0) - positions.unsqueeze(1)
        distance = -ops.minimum(distance, 0)
        far = ops.log(distance.cast(burn.float32) / 4.0) / 3.465736 * 4.0
        far = ops.minimum(far.cast(burn.int64) + 4, 7)
        buckets = ops.where(distance < 4, distance, far)
        return self.relative_attention_bias(buckets).permute(2, 0, 1).unsqueeze(0)


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
