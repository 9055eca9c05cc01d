"""The decoder of Whisper with its head, as a person writes it."""

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.model = WhisperModel()
        self.proj_out = nn.Linear(32, 99, bias=False)
        self.proj_out.weight = self.model.decoder.embed_tokens.weight

    def __call__(
        self,
        decoder_input_ids: Tensor,
        encoder_hidden_states: Tensor,
        decoder_attention_mask: Tensor,
    ) -> Tensor:
        x = self.model(decoder_input_ids, encoder_hidden_states, decoder_attention_mask)
        return self.proj_out(x)


class WhisperModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = WhisperDecoder()

    def __call__(self, input_ids: Tensor, encoded: Tensor, mask: Tensor) -> Tensor:
        return self.decoder(input_ids, encoded, mask)


class WhisperDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(99, 32)
        self.embed_positions = nn.Embedding(24, 32)
        self.layers = nn.ModuleList(WhisperDecoderLayer() for _ in range(2))
        self.layer_norm = nn.LayerNorm(32)

    def __call__(self, input_ids: Tensor, encoded: Tensor, mask: Tensor) -> Tensor:
        positions = ops.arange(input_ids.shape[1])
        causal = positions.unsqueeze(0) <= positions.unsqueeze(1)
        mask = causal & mask.cast(burn.bool_).unsqueeze((1, 2))
        x = self.embed_tokens(input_ids) + self.embed_positions(positions)
        for layer in self.layers:
            x = layer(x, encoded, mask)
        return self.layer_norm(x)


class WhisperDecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn = WhisperAttention()
        self.self_attn_layer_norm = nn.LayerNorm(32)
        self.encoder_attn = WhisperAttention()
        self.encoder_attn_layer_norm = nn.LayerNorm(32)
        self.fc1 = nn.Linear(32, 48)
        self.fc2 = nn.Linear(48, 32)
        self.final_layer_norm = nn.LayerNorm(32)

    def __call__(self, x: Tensor, encoded: Tensor, mask: Tensor) -> Tensor:
        y = self.self_attn_layer_norm(x)
        x = x + self.self_attn(y, y, mask)
        x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), encoded)
        return x + self.fc2(ops.gelu(self.fc1(self.final_layer_norm(x))))


class WhisperAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k_proj = nn.Linear(32, 32, bias=False)
        self.v_proj = nn.Linear(32, 32)
        self.q_proj = nn.Linear(32, 32)
        self.out_proj = nn.Linear(32, 32)

    def __call__(self, x: Tensor, states: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, length = x.shape[:2]
        query = self.q_proj(x).reshape(batch, length, 4, 8).transpose(1, 2)
        key = self.k_proj(states).reshape(batch, -1, 4, 8).transpose(1, 2)
        value = self.v_proj(states).reshape(batch, -1, 4, 8).transpose(1, 2)
        x = ops.attention(query, key, value, mask)
        return self.out_proj(x.transpose(1, 2).reshape(batch, length, 32))
