"""A vision transformer for image classification, as a person writes it."""

from burn import Tensor, nn, ops


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.vit = ViTModel()
        self.classifier = nn.Linear(32, 5)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.classifier(self.vit(pixel_values)[:, 0])


class ViTModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = ViTEmbeddings()
        self.layers = nn.ModuleList(ViTLayer() for _ in range(2))
        self.layernorm = nn.LayerNorm(32, eps=1e-12)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        x = self.embeddings(pixel_values)
        for layer in self.layers:
            x = layer(x)
        return self.layernorm(x)


class ViTEmbeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cls_token = nn.parameter(1, 1, 32)
        self.patch_embeddings = ViTPatchEmbeddings()
        self.position_embeddings = nn.parameter(1, 17, 32)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        batch = pixel_values.shape[0]
        cls_token = self.cls_token.expand(batch, 1, 32)
        x = ops.concat([cls_token, self.patch_embeddings(pixel_values)], axis=1)
        return x + self.position_embeddings


class ViTPatchEmbeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, 32, kernel_size=8, stride=8)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        return self.projection(pixel_values).flatten(2).transpose(1, 2)


class ViTLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = ViTAttention()
        self.mlp = ViTMLP()
        self.layernorm_before = nn.LayerNorm(32, eps=1e-12)
        self.layernorm_after = nn.LayerNorm(32, eps=1e-12)

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.layernorm_before(x))
        return x + self.mlp(self.layernorm_after(x))


class ViTAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(32, 32)
        self.k_proj = nn.Linear(32, 32)
        self.v_proj = nn.Linear(32, 32)
        self.o_proj = nn.Linear(32, 32)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        query = self.q_proj(x).reshape(batch, length, 4, 8).transpose(1, 2)
        key = self.k_proj(x).reshape(batch, length, 4, 8).transpose(1, 2)
        value = self.v_proj(x).reshape(batch, length, 4, 8).transpose(1, 2)
        x = ops.attention(query, key, value)
        return self.o_proj(x.transpose(1, 2).reshape(batch, length, 32))


class ViTMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(32, 48)
        self.fc2 = nn.Linear(48, 32)

    def __call__(self, x: Tensor) -> Tensor:
        return self.fc2(ops.gelu(self.fc1(x)))
