"""Networks in burn that are trained to be measured, and a step of training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import burn
from benchmarks.training_cases import BERT, CASES, LSTM, RESNET, VIT
from burn import Autodiff, Buffer, Cpu, nn, ops, optim, train


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.ModuleList[Any]()
        if stride != 1 or inputs != outputs:
            self.shortcut.append(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            )
            self.shortcut.append(nn.BatchNorm2d(outputs))

    def __call__(self, x: Any) -> Any:
        y = ops.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        for layer in self.shortcut:
            x = layer(x)
        return ops.relu(x + y)


class ResNet(nn.Module):
    """The forward pass of residual networks of any depth."""

    conv: nn.Conv2d
    norm: nn.BatchNorm2d
    blocks: Any
    classifier: nn.Linear

    def __call__(self, x: Any) -> Any:
        x = ops.relu(self.norm(self.conv(x)))
        x = ops.max_pool(x, kernel_size=3, stride=2, padding=1)
        for block in self.blocks:
            x = block(x)
        return self.classifier(ops.mean(x, (2, 3)))


class ResNet18(ResNet):
    """[N, 3, H, W] to 1000 classes."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        self.blocks = nn.ModuleList([Block(*extents) for extents in RESNET])
        self.classifier = nn.Linear(512, 1000)


class Layer(nn.Module):
    """A layer of an encoder: attention, and two linear layers."""

    def __init__(self, shape: Any = BERT) -> None:
        self.shape, size = shape, shape.size
        self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
        self.value, self.out = nn.Linear(size, size), nn.Linear(size, size)
        self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def attend(self, x: Any) -> Any:
        """Return the attention of all positions to each other."""
        heads = self.shape.heads
        each = (*x.shape[:2], heads, self.shape.size // heads)
        query, key, value = (
            ops.permute(ops.reshape(part(x), each), (0, 2, 1, 3))
            for part in (self.query, self.key, self.value)
        )
        weights = ops.softmax(query @ key.mT * each[-1] ** -0.5)
        mixed = ops.reshape(ops.permute(weights @ value, (0, 2, 1, 3)), x.shape)
        return self.out(mixed)

    def __call__(self, x: Any) -> Any:
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.narrow(ops.gelu(self.wide(x))))


class PreNormLayer(Layer):
    """A layer whose norms stand before attention and linear layers."""

    def __call__(self, x: Any) -> Any:
        x = x + self.attend(self.norm1(x))
        return x + self.narrow(ops.gelu(self.wide(self.norm2(x))))


class VitTiny(nn.Module):
    """[N, 3, 224, 224] to 1000 classes."""

    def __init__(self) -> None:
        self.patches = nn.Conv2d(3, VIT.size, VIT.patch, stride=VIT.patch)
        self.token = nn.parameter(1, 1, VIT.size)
        self.positions = nn.parameter(1, VIT.length, VIT.size)
        self.layers = nn.ModuleList([PreNormLayer(VIT) for _ in range(VIT.layers)])
        self.norm = nn.LayerNorm(VIT.size)
        self.classifier = nn.Linear(VIT.size, 1000)

    def __call__(self, x: Any) -> Any:
        x = ops.transpose(ops.flatten(self.patches(x), 2), 1, 2)
        token = ops.expand(self.token.value, (x.shape[0], 1, VIT.size))
        x = ops.concat([token, x], axis=1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.classifier(self.norm(x)[:, 0])


class BertTiny(nn.Module):
    """Token numbers [N, S] to two classes."""

    def __init__(self, shape: Any = BERT) -> None:
        self.tokens = nn.Embedding(shape.tokens, shape.size)
        self.positions = nn.Embedding(shape.length, shape.size)
        self.numbers = Buffer(burn.from_numpy(np.arange(shape.length)))
        self.norm = nn.LayerNorm(shape.size)
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape.layers)])
        self.classifier = nn.Linear(shape.size, 2)

    def __call__(self, tokens: Any) -> Any:
        numbers = self.numbers.value[: tokens.shape[1]]
        x = self.norm(self.tokens(tokens) + self.positions(numbers))
        for layer in self.layers:
            x = layer(x)
        return self.classifier(x[:, 0])


class DigitsCnn(nn.Module):
    """[N, 1, 28, 28] to ten classes."""

    def __init__(self) -> None:
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.classifier = nn.Linear(32 * 7 * 7, 10)

    def __call__(self, x: Any) -> Any:
        for conv in (self.conv1, self.conv2):
            x = ops.max_pool(ops.relu(conv(x)), kernel_size=2, stride=2)
        return self.classifier(ops.flatten(x, 1))


class Recurrent(nn.Module):
    """[N, T, features] to ten classes, by the last output of recurrent layers."""

    def __init__(self, kind: Any) -> None:
        sizes = (LSTM.features, LSTM.hidden, LSTM.layers)
        self.layers = kind(*sizes, batch_first=True)
        self.classifier = nn.Linear(LSTM.hidden, 10)

    def __call__(self, x: Any) -> Any:
        return self.classifier(self.layers(x)[0][:, -1])


NETWORKS: dict[str, Any] = {
    "resnet18": ResNet18,
    "bert_tiny": BertTiny,
    "vit_tiny": VitTiny,
    "digits_cnn": DigitsCnn,
    "lstm": partial(Recurrent, nn.LSTM),
    "gru": partial(Recurrent, nn.GRU),
}


def loss_of(net: Any, x: Any, target: Any) -> Any:
    """The cross entropy of ``net`` on a batch."""
    return ops.mean(-ops.sum(ops.log_softmax(net(x)) * target, -1))


def stepping(name: str, compiled: bool) -> Callable[[], Any]:
    """A step of gradient descent on one batch; the loss is its result."""
    net, case = NETWORKS[name]().to(Autodiff(Cpu())), CASES[name]
    x, target = (burn.from_numpy(array) for array in case.batch())

    opt = optim.SGD(net, lr=case.rate)

    @train.step(net, opt, compiled=compiled)
    def step(x: Any, target: Any) -> Any:
        return loss_of(net, x, target)

    return lambda: step(x, target).numpy()
