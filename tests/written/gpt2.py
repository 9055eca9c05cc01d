"""A GPT-2 decoder for causal language modeling, as a person writes it."""

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.transformer = GPT2Model()
        self.lm_head = nn.Linear(32, 99, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.lm_head(self.transformer(input_ids, attention_mask))


class GPT2Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(99, 32)
        self.wpe = nn.Embedding(40, 32)
        self.h = nn.ModuleList(GPT2Block() for _ in range(2))
        self.ln_f = nn.LayerNorm(32)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        positions = ops.arange(input_ids.shape[1])
        causal = positions.unsqueeze(0) <= positions.unsqueeze(1)
        mask = causal & attention_mask.cast(burn.bool_).unsqueeze((1, 2))
        x = self.wte(input_ids) + self.wpe(positions.unsqueeze(0))
        for block in self.h:
            x = block(x, mask)
        return self.ln_f(x)


class GPT2Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(32)
        self.attn = GPT2Attention()
        self.ln_2 = nn.LayerNorm(32)
        self.mlp = GPT2MLP()

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class GPT2Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Conv1D(96, 32)
        self.c_proj = nn.Conv1D(32, 32)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, seq = x.shape[:2]
        query, key, value = ops.chunk(self.c_attn(x), count=3, axis=2)
        query = query.reshape(batch, seq, 4, 8).transpose(1, 2)
        key = key.reshape(batch, seq, 4, 8).transpose(1, 2)
        value = value.reshape(batch, seq, 4, 8).transpose(1, 2)
        x = ops.attention(query, key, value, mask)
        return self.c_proj(x.transpose(1, 2).reshape(batch, seq, 32))


class GPT2MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_fc = nn.Conv1D(128, 32)
        self.c_proj = nn.Conv1D(32, 128)

    def __call__(self, x: Tensor) -> Tensor:
        return self.c_proj(ops.gelu(self.c_fc(x), approximate="tanh"))
