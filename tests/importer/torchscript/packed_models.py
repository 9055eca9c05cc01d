"""A recurrent layer of packed sequences, for TorchScript's compiler."""

import torch
from torch import Tensor, nn


class PackedLstm(nn.Module):
    def __init__(self, is_sorted: bool) -> None:
        super().__init__()
        self.is_sorted = is_sorted
        self.layer = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=self.is_sorted
        )
        out, state = self.layer(packed)
        y, counts = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return y, counts, state[0]


def save_script(model: nn.Module, path: str) -> None:
    """Write the script of a model."""
    torch.jit.save(torch.jit.script(model), path)
