"""The networks of :mod:`benchmarks.training_ours` in PyTorch, run without plans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.training_cases import BERT, CASES, LSTM, RESNET, VIT


class Block(nn.Module):  # type: ignore[misc]
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut.append(nn.Conv2d(inputs, outputs, 1, stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        y = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x)))))
        return functional.relu(self.shortcut(x) + y)


class ResNet18(nn.Module):  # type: ignore[misc]
    """[N, 3, H, W] to 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        self.blocks = nn.Sequential(*(Block(*extents) for extents in RESNET))
        self.classifier = nn.Linear(512, 1000)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norm(self.conv(x)))
        x = self.blocks(functional.max_pool2d(x, 3, 2, 1))
        return self.classifier(x.mean((2, 3)))


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of an encoder: attention, and two linear layers."""

    def __init__(self, shape: Any = BERT) -> None:
        super().__init__()
        self.shape, size = shape, shape.size
        self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
        self.value, self.out = nn.Linear(size, size), nn.Linear(size, size)
        self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def attend(self, x: Any) -> Any:
        """Return the attention of all positions to each other."""
        heads = self.shape.heads
        each = (*x.shape[:2], heads, self.shape.size // heads)
        parts = (part(x) for part in (self.query, self.key, self.value))
        heads = [part.reshape(each).transpose(1, 2) for part in parts]
        mixed = functional.scaled_dot_product_attention(*heads)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))

    def forward(self, x: Any) -> Any:
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.narrow(functional.gelu(self.wide(x))))


class PreNormLayer(Layer):
    """A layer whose norms stand before attention and linear layers."""

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.norm1(x))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))


class VitTiny(nn.Module):  # type: ignore[misc]
    """[N, 3, 224, 224] to 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, VIT.size, VIT.patch, VIT.patch)
        self.token = nn.Parameter(torch.zeros(1, 1, VIT.size))
        self.positions = nn.Parameter(torch.zeros(1, VIT.length, VIT.size))
        self.layers = nn.Sequential(*(PreNormLayer(VIT) for _ in range(VIT.layers)))
        self.norm = nn.LayerNorm(VIT.size)
        self.classifier = nn.Linear(VIT.size, 1000)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        token = self.token.expand(x.shape[0], 1, VIT.size)
        x = torch.cat([token, x], 1) + self.positions
        return self.classifier(self.norm(self.layers(x))[:, 0])


class BertTiny(nn.Module):  # type: ignore[misc]
    """Token numbers [N, S] to two classes."""

    def __init__(self, shape: Any = BERT) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.tokens, shape.size)
        self.positions = nn.Embedding(shape.length, shape.size)
        self.norm = nn.LayerNorm(shape.size)
        self.layers = nn.Sequential(*(Layer(shape) for _ in range(shape.layers)))
        self.classifier = nn.Linear(shape.size, 2)

    def forward(self, tokens: Any) -> Any:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.tokens(tokens) + self.positions(places))
        return self.classifier(self.layers(x)[:, 0])


class DigitsCnn(nn.Module):  # type: ignore[misc]
    """[N, 1, 28, 28] to ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.classifier = nn.Linear(32 * 7 * 7, 10)

    def forward(self, x: Any) -> Any:
        for conv in (self.conv1, self.conv2):
            x = functional.max_pool2d(functional.relu(conv(x)), 2)
        return self.classifier(x.flatten(1))


class Recurrent(nn.Module):  # type: ignore[misc]
    """[N, T, features] to ten classes, by the last output of recurrent layers."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        sizes = (LSTM.features, LSTM.hidden, LSTM.layers)
        self.layers = kind(*sizes, batch_first=True)
        self.classifier = nn.Linear(LSTM.hidden, 10)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.layers(x)[0][:, -1])


NETWORKS: dict[str, Any] = {
    "resnet18": ResNet18,
    "bert_tiny": BertTiny,
    "vit_tiny": VitTiny,
    "digits_cnn": DigitsCnn,
    "lstm": partial(Recurrent, nn.LSTM),
    "gru": partial(Recurrent, nn.GRU),
}


def stepping(name: str, threads: int) -> Callable[[], Any]:
    """A step of gradient descent on one batch; the loss is its result."""
    torch.set_num_threads(threads)
    net, case = NETWORKS[name](), CASES[name]
    x, target = (torch.from_numpy(array) for array in case.batch())
    optimizer = torch.optim.SGD(net.parameters(), case.rate)

    def step() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach().numpy()

    return step
