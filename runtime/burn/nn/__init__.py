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
from burn.nn.activation import (
    ELU as ELU,
)
from burn.nn.activation import (
    GELU as GELU,
)
from burn.nn.activation import (
    Identity as Identity,
)
from burn.nn.activation import (
    LeakyReLU as LeakyReLU,
)
from burn.nn.activation import (
    PReLU as PReLU,
)
from burn.nn.activation import (
    ReLU as ReLU,
)
from burn.nn.activation import (
    Sigmoid as Sigmoid,
)
from burn.nn.activation import (
    SiLU as SiLU,
)
from burn.nn.activation import (
    Softmax as Softmax,
)
from burn.nn.activation import (
    Tanh as Tanh,
)
from burn.nn.conv import (
    Conv1d as Conv1d,
)
from burn.nn.conv import (
    Conv2d as Conv2d,
)
from burn.nn.conv import (
    Conv3d as Conv3d,
)
from burn.nn.conv import (
    ConvTranspose1d as ConvTranspose1d,
)
from burn.nn.conv import (
    ConvTranspose2d as ConvTranspose2d,
)
from burn.nn.conv import (
    ConvTranspose3d as ConvTranspose3d,
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
from burn.nn.linear import (
    Linear as Linear,
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
from burn.nn.norm import (
    BatchNorm1d as BatchNorm1d,
)
from burn.nn.norm import (
    BatchNorm2d as BatchNorm2d,
)
from burn.nn.norm import (
    BatchNorm3d as BatchNorm3d,
)
from burn.nn.norm import (
    GroupNorm as GroupNorm,
)
from burn.nn.norm import (
    InstanceNorm1d as InstanceNorm1d,
)
from burn.nn.norm import (
    InstanceNorm2d as InstanceNorm2d,
)
from burn.nn.norm import (
    InstanceNorm3d as InstanceNorm3d,
)
from burn.nn.norm import (
    LayerNorm as LayerNorm,
)
from burn.nn.norm import (
    LocalResponseNorm as LocalResponseNorm,
)
from burn.nn.norm import (
    RMSNorm as RMSNorm,
)
from burn.nn.pool import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
)
from burn.nn.pool import (
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
)
from burn.nn.pool import (
    AdaptiveAvgPool3d as AdaptiveAvgPool3d,
)
from burn.nn.pool import (
    AvgPool1d as AvgPool1d,
)
from burn.nn.pool import (
    AvgPool2d as AvgPool2d,
)
from burn.nn.pool import (
    AvgPool3d as AvgPool3d,
)
from burn.nn.pool import (
    GlobalAvgPool as GlobalAvgPool,
)
from burn.nn.pool import (
    MaxPool1d as MaxPool1d,
)
from burn.nn.pool import (
    MaxPool2d as MaxPool2d,
)
from burn.nn.pool import (
    MaxPool3d as MaxPool3d,
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
