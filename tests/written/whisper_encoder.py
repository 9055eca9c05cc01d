"""The encoder of Whisper, as a person writes it."""

from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(16, 32, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(32, 32, kernel_size=3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(20, 32)
        self.layers = nn.ModuleList(WhisperEncoderLayer() for _ in range(2))
        self.layer_norm = nn.LayerNorm(32)

    def __call__(self, input_features: Tensor) -> Tensor:
        x = ops.gelu(self.conv1(input_features))
        x = ops.gelu(self.conv2(x)).transpose(1, 2)
        x = x + self.embed_positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class WhisperEncoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn = WhisperAttention()
        self.self_attn_layer_norm = nn.LayerNorm(32)
        self.fc1 = nn.Linear(32, 48)
        self.fc2 = nn.Linear(48, 32)
        self.final_layer_norm = nn.LayerNorm(32)

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.self_attn_layer_norm(x))
        return x + self.fc2(ops.gelu(self.fc1(self.final_layer_norm(x))))


class WhisperAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k_proj = nn.Linear(32, 32, bias=False)
        self.v_proj = nn.Linear(32, 32)
        self.q_proj = nn.Linear(32, 32)
        self.out_proj = nn.Linear(32, 32)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        query = self.q_proj(x).reshape(batch, length, 4, 8).transpose(1, 2)
        key = self.k_proj(x).reshape(batch, length, 4, 8).transpose(1, 2)
        value = self.v_proj(x).reshape(batch, length, 4, 8).transpose(1, 2)
        x = ops.attention(query, key, value)
        return self.out_proj(x.transpose(1, 2).reshape(batch, length, 32))
