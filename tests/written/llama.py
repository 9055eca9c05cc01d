"""A Llama decoder for causal language modeling, as a person writes it."""

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.model = LlamaModel()
        self.lm_head = nn.Linear(32, 99, bias=False)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.lm_head(self.model(input_ids, attention_mask))


class LlamaModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(99, 32)
        self.rotary_emb = LlamaRotaryEmbedding()
        self.layers = nn.ModuleList(LlamaDecoderLayer() for _ in range(2))
        self.norm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        positions = ops.arange(input_ids.shape[1])
        causal = positions.unsqueeze(0) <= positions.unsqueeze(1)
        mask = causal & attention_mask.cast(burn.bool_).unsqueeze((1, 2))
        cos, sin = self.rotary_emb(positions)
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.norm(x)


class LlamaRotaryEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inv_freq = nn.buffer(4)

    def __call__(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions.unsqueeze((0, 2)).cast(burn.float32) * self.inv_freq
        return ops.cos(angles), ops.sin(angles)


class LlamaDecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn = LlamaAttention()
        self.mlp = LlamaMLP()
        self.input_layernorm = nn.RMSNorm(32, eps=1e-6)
        self.post_attention_layernorm = nn.RMSNorm(32, eps=1e-6)

    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(32, 32, bias=False)
        self.k_proj = nn.Linear(32, 16, bias=False)
        self.v_proj = nn.Linear(32, 16, bias=False)
        self.o_proj = nn.Linear(32, 32, bias=False)

    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        batch, seq = x.shape[:2]
        query = self.q_proj(x).reshape(batch, seq, 4, 8).transpose(1, 2)
        key = self.k_proj(x).reshape(batch, seq, 2, 8).transpose(1, 2)
        value = self.v_proj(x).reshape(batch, seq, 2, 8).transpose(1, 2)
        query = ops.rotary_embedding(query, cos, sin)
        key = ops.rotary_embedding(key, cos, sin)
        x = ops.attention(query, key, value, mask)
        return self.o_proj(x.transpose(1, 2).reshape(batch, seq, 32))


class LlamaMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(32, 48, bias=False)
        self.up_proj = nn.Linear(32, 48, bias=False)
        self.down_proj = nn.Linear(48, 32, bias=False)

    def __call__(self, x: Tensor) -> Tensor:
        return self.down_proj(ops.silu(self.gate_proj(x)) * self.up_proj(x))
