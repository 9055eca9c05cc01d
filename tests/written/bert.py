"""A BERT encoder with its pooler, as a person writes it."""

from typing import NamedTuple

import burn
from burn import Tensor, nn, ops


class Output(NamedTuple):
    last_hidden_state: Tensor
    pooler_output: Tensor


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings()
        self.encoder = BertEncoder()
        self.pooler = BertPooler()

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Output:
        mask = attention_mask.cast(burn.bool_).unsqueeze((1, 2))
        x = self.encoder(self.embeddings(input_ids), mask)
        return Output(x, self.pooler(x))


class BertEmbeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(99, 32)
        self.position_embeddings = nn.Embedding(40, 32)
        self.token_type_embeddings = nn.Embedding(2, 32)
        self.LayerNorm = nn.LayerNorm(32, eps=1e-12)

    def __call__(self, input_ids: Tensor) -> Tensor:
        batch, seq = input_ids.shape
        position_ids = ops.arange(seq).unsqueeze(0)
        token_type_ids = ops.full((batch, seq), 0)
        x = self.word_embeddings(input_ids)
        x = x + self.token_type_embeddings(token_type_ids)
        x = x + self.position_embeddings(position_ids)
        return self.LayerNorm(x)


class BertEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.ModuleList(BertLayer() for _ in range(2))

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class BertLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = BertAttention()
        self.intermediate = BertIntermediate()
        self.output = BertOutput(48)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BertAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self = BertSelfAttention()
        self.output = BertOutput(32)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.output(self.self(x, mask), x)


class BertSelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(32, 32)
        self.key = nn.Linear(32, 32)
        self.value = nn.Linear(32, 32)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, seq = x.shape[:2]
        query = self.query(x).reshape(batch, seq, 4, 8).transpose(1, 2)
        key = self.key(x).reshape(batch, seq, 4, 8).transpose(1, 2)
        value = self.value(x).reshape(batch, seq, 4, 8).transpose(1, 2)
        x = ops.attention(query, key, value, mask)
        return x.transpose(1, 2).reshape(batch, seq, 32)


class BertIntermediate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(32, 48)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.gelu(self.dense(x))


class BertOutput(nn.Module):
    def __init__(self, in_features: int) -> None:
        super().__init__()
        self.dense = nn.Linear(in_features, 32)
        self.LayerNorm = nn.LayerNorm(32, eps=1e-12)

    def __call__(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x) + residual)


class BertPooler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(32, 32)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.tanh(self.dense(x[:, 0]))
