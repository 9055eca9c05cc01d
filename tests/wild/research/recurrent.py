"""Recurrent layers in forms that ONNX has no operator for."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils import rnn

from tests.wild.research.inputs import Program, free_sequences


class ProjectedLstm(nn.Module):
    """A stack of LSTMs in both directions whose states are projected."""

    def __init__(self, width: int = 8):
        super().__init__()
        both = {"batch_first": True, "bidirectional": True}
        self.layers: Any = nn.LSTM(width, 6, 2, proj_size=3, **both)
        self.head = nn.Linear(6, 2)

    def forward(self, x: Any) -> Any:
        y, (h, c) = self.layers(x)
        return self.head(y), h, c


class PackedProjectedLstm(ProjectedLstm):
    """The same of sequences of different lengths."""

    def forward(self, x: Any, lengths: Any = None) -> Any:
        packed = rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        y, (h, c) = self.layers(packed)
        padded, counts = rnn.pad_packed_sequence(y, batch_first=True)
        return self.head(padded), counts, h, c


def _packed() -> Program:
    sizes = ((2, 5), torch.tensor([3, 5])), ((3, 7), torch.tensor([7, 1, 4]))
    small, large = ((torch.randn(*shape, 8), lengths) for shape, lengths in sizes)
    return PackedProjectedLstm(), small, large


PROGRAMS = {
    "projected_lstm": lambda: (ProjectedLstm(), *free_sequences()),
    "packed_projected_lstm": _packed,
}
