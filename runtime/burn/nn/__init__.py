"""Modules and layers, with PyTorch's names, layouts and keys."""

from burn.box import (
    Buffer as Buffer,
    Parameter as Parameter,
)
from burn.nn import (
    init as init,
)
from burn.nn.dropout import (
    Dropout as Dropout,
)
from burn.nn.embedding import (
    Embedding as Embedding,
)
from burn.nn.init import (
    buffer as buffer,
    parameter as parameter,
)
from burn.nn.module import (
    Module as Module,
    ModuleDict as ModuleDict,
    ModuleList as ModuleList,
    Sequential as Sequential,
    WeightsError as WeightsError,
)
from burn.nn.rnn import (
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
)
