"""What is trained to be measured: shapes, and batches of random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Bert(NamedTuple):
    tokens: int = 30522
    size: int = 128
    heads: int = 2
    layers: int = 2
    length: int = 128


class Sequences(NamedTuple):
    features: int = 64
    hidden: int = 128
    layers: int = 2
    length: int = 32


class Vit(NamedTuple):
    """ViT-tiny, for images of 224 x 224 pixels."""

    size: int = 192
    heads: int = 3
    layers: int = 12
    patch: int = 16
    length: int = 197


BERT, VIT = Bert(), Vit()
LSTM = Sequences()
#: Channels in, channels out and the stride of each block.
RESNET = (
    *((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)),
    *((128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)),
)


@dataclass(frozen=True)
class Case:
    """The shape of a batch, how many classes there are, and the rate of descent."""

    shape: tuple[int, ...]
    classes: int
    rate: float = 0.001

    def batch(self) -> tuple[Any, Any]:
        """The inputs, and the classes as rows of zeros and a one."""
        generator = np.random.default_rng(0)
        if len(self.shape) == 2:
            x: Any = generator.integers(0, BERT.tokens, self.shape)
        else:
            x = generator.standard_normal(self.shape, np.float32)
        chosen = generator.integers(0, self.classes, self.shape[0])
        return x, np.eye(self.classes, dtype=np.float32)[chosen]


CASES = {
    "resnet18": Case((8, 3, 224, 224), 1000),
    "bert_tiny": Case((8, BERT.length), 2),
    "vit_tiny": Case((4, 3, 224, 224), 1000),
    "digits_cnn": Case((64, 1, 28, 28), 10),
    "lstm": Case((16, LSTM.length, LSTM.features), 10),
    "gru": Case((16, LSTM.length, LSTM.features), 10),
}
