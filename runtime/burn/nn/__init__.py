"""Modules and layers, with PyTorch's names, layouts and keys."""

from burn.box import (
    Buffer as Buffer,
)
from burn.box import (
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
)
from burn.nn.init import (
    parameter as parameter,
)
from burn.nn.module import (
    Module as Module,
)
from burn.nn.module import (
    ModuleDict as ModuleDict,
)
from burn.nn.module import (
    ModuleList as ModuleList,
)
from burn.nn.module import (
    Sequential as Sequential,
)
from burn.nn.module import (
    WeightsError as WeightsError,
)
from burn.nn.rnn import (
    GRU as GRU,
)
from burn.nn.rnn import (
    LSTM as LSTM,
)
from burn.nn.rnn import (
    RNN as RNN,
)
