"""Modules and layers, with PyTorch's names, layouts and keys."""

from burn.box import Buffer, Parameter
from burn.nn import init
from burn.nn.dropout import Dropout
from burn.nn.embedding import Embedding
from burn.nn.module import Module, ModuleList, Sequential, WeightsError
from burn.nn.rnn import GRU, LSTM, RNN

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Buffer",
    "Dropout",
    "Embedding",
    "Module",
    "ModuleList",
    "Parameter",
    "Sequential",
    "WeightsError",
    "init",
]
