"""Recurrent layers in forms that ONNX has no operator for."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrizations, rnn

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


class NormalizedRecurrence(nn.Module):
    """Recurrent layers with parametrized weights: weight norm and spectral norm."""

    def __init__(self, kind: Any, width: int = 8, **options: Any):
        super().__init__()
        layers = kind(width, 5, batch_first=True, **options)
        layers = parametrizations.weight_norm(layers, "weight_hh_l0")
        self.layers: Any = parametrizations.spectral_norm(layers, "weight_ih_l0")
        self.head = nn.LazyLinear(2)

    def forward(self, x: Any) -> Any:
        return self.head(self.layers(x)[0])


class ComplexStates(nn.Module):
    """A linear recurrence of complex states, as a product with powers of its factors.

    The matrix of inputs is discretized with one step size for each state.
    """

    def __init__(self, width: int = 8, states: int = 6):
        super().__init__()
        self.decay = nn.Parameter(torch.rand(states) - 1)
        self.frequency = nn.Parameter(torch.arange(float(states)))
        self.log_step = nn.Parameter(-2 * torch.rand(states))
        self.inputs = nn.Parameter(torch.randn(states, width, 2) * 0.3)
        self.outputs = nn.Parameter(torch.randn(width, states, 2) * 0.3)

    def forward(self, x: Any) -> Any:
        poles = torch.complex(-self.decay.exp(), self.frequency)
        factors = torch.exp(poles * self.log_step.exp())
        inputs = ((factors - 1) / poles)[:, None] * torch.view_as_complex(self.inputs)
        time = torch.arange(x.shape[1])
        distance = time[:, None] - time
        powers = factors ** distance.clamp(min=0)[..., None]
        powers = powers * (distance >= 0)[..., None]
        terms = x.to(torch.complex64) @ inputs.T
        states = torch.einsum("tsn,bsn->btn", powers, terms)
        return 2 * (states @ torch.view_as_complex(self.outputs).T).real


def _normalized(kind: Any, **options: Any) -> Program:
    small, large = free_sequences()
    module = NormalizedRecurrence(kind, **options)
    module(small[0] if isinstance(small, tuple) else small)
    return module, small, large


def _packed() -> Program:
    sizes = ((2, 5), torch.tensor([3, 5])), ((3, 7), torch.tensor([7, 1, 4]))
    small, large = ((torch.randn(*shape, 8), lengths) for shape, lengths in sizes)
    return PackedProjectedLstm(), small, large


PROGRAMS = {
    "projected_lstm": lambda: (ProjectedLstm(), *free_sequences()),
    "packed_projected_lstm": _packed,
    "normalized_lstm": lambda: _normalized(nn.LSTM),
    "normalized_gru": lambda: _normalized(nn.GRU, num_layers=2, bidirectional=True),
    "normalized_rnn": lambda: _normalized(nn.RNN, nonlinearity="relu"),
    "complex_states": lambda: (ComplexStates(), *free_sequences()),
}
