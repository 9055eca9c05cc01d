"""Positional encodings."""

import numpy as np

from burn import ops
from burn.box import Box, Buffer
from burn.nn.dropout import Dropout
from burn.nn.module import Module
from burn.tensor import Tensor, from_numpy


class PositionalEncoding(Module):
    """Adds sines and cosines of positions (A. Vaswani et al., 2017), and drops some.

    ``pe`` is [max_len, d_model]: sines at even features, cosines at odd ones, with wave
    lengths from 2 pi to ``2 pi base``. It is not a key of the ``state_dict``.

    Raises:
        ValueError: ``d_model`` is odd.
    """

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.0,
        max_len: int = 5000,
        *,
        batch_first: bool = False,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        angles = _angles(d_model, max_len, base)
        table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(max_len, -1)
        self.pe = _table(table)
        self.dropout = Dropout(dropout)
        self.batch_first = batch_first

    def __call__(self, x: Tensor, offset: int | Tensor | Box = 0) -> Tensor:
        """Return ``x`` plus the rows of its positions, which begin at ``offset``.

        ``x`` is [length, batch, d_model], or [batch, length, d_model] with
        ``batch_first``. The offset may be a tensor int64 [1], as the ``length`` of a
        cache.

        Raises:
            ValueError: a position is behind ``max_len``, and the offset is a number.
        """
        length = x.shape[1 if self.batch_first else 0]
        rows = _rows(self.pe, offset, length)
        return self.dropout(x + (rows if self.batch_first else rows.unsqueeze(1)))


class RotaryEmbedding(Module):
    """Rotary position embedding (J. Su et al., 2021).

    ``dim`` is the size of a head, or of the part of it that is rotated. Pairs are
    features i and i + dim / 2 (GPT-NeoX, Llama), or neighbors with ``interleaved``
    (GPT-J). ``cos`` and ``sin`` are [max_len, dim / 2] and not in the ``state_dict``.

    Raises:
        ValueError: ``dim`` is odd.
    """

    def __init__(
        self,
        dim: int,
        max_len: int = 4096,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
    ) -> None:
        super().__init__()
        angles = _angles(dim, max_len, base)
        self.cos, self.sin = _table(np.cos(angles)), _table(np.sin(angles))
        self.interleaved = interleaved

    def __call__(self, x: Tensor, offset: int | Tensor | Box = 0) -> Tensor:
        """Return ``x`` [batch, heads, length, size] with its first features rotated.

        Positions begin at ``offset``, which may be a tensor int64 [1], as the
        ``length`` of a cache.

        Raises:
            ValueError: a position is behind ``max_len``, and the offset is a number.
        """
        length = x.shape[2]
        tables = (_rows(each, offset, length) for each in (self.cos, self.sin))
        cos, sin = (rows.unsqueeze(0) for rows in tables)
        return ops.rotary_embedding(x, cos, sin, interleaved=self.interleaved)


def _angles(width: int, length: int, base: float) -> np.ndarray:
    """Return [length, width / 2]: the angles of positions, with decreasing
    frequency.
    """
    if width % 2:
        raise ValueError(f"expected an even number of features, got {width}")
    speeds = base ** (-np.arange(0, width, 2) / width)
    return np.arange(length)[:, None] * speeds


def _table(values: np.ndarray) -> Buffer:
    return Buffer(from_numpy(values.astype(np.float32)), persistent=False)


def _rows(table: Buffer, offset: int | Tensor | Box, length: int) -> Tensor:
    if not isinstance(offset, int):
        rows: Tensor = ops.take(table, ops.arange(length) + offset, 0)
        return rows
    if offset + length > table.shape[0]:
        raise ValueError(
            f"expected positions below {table.shape[0]}, got {offset + length - 1}; "
            "give a larger max_len"
        )
    return table.value[offset : offset + length]
