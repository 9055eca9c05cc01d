"""Modules and layers, with PyTorch's names, layouts and keys."""

from typing import TYPE_CHECKING

from burn.box import Buffer as Buffer, Parameter as Parameter
from burn.lazy import lazy_names
from burn.nn import init as init
from burn.nn.activation import (
    ELU as ELU,
    GELU as GELU,
    Identity as Identity,
    LeakyReLU as LeakyReLU,
    PReLU as PReLU,
    ReLU as ReLU,
    Sigmoid as Sigmoid,
    SiLU as SiLU,
    Softmax as Softmax,
    Tanh as Tanh,
)
from burn.nn.autocast import Precision as Precision, autocast as autocast
from burn.nn.cells import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell
from burn.nn.conv import (
    Conv1d as Conv1d,
    Conv2d as Conv2d,
    Conv3d as Conv3d,
    ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d,
    ConvTranspose3d as ConvTranspose3d,
)
from burn.nn.dropout import Dropout as Dropout, DynamicDropout as DynamicDropout
from burn.nn.embedding import Embedding as Embedding
from burn.nn.init import buffer as buffer, parameter as parameter
from burn.nn.inputs import InputError as InputError, check_inputs as check_inputs
from burn.nn.linear import Conv1D as Conv1D, Linear as Linear
from burn.nn.modes import inference as inference
from burn.nn.module import (
    Module as Module,
    ModuleList as ModuleList,
    ModuleTuple as ModuleTuple,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from burn.nn.norm import (
    BatchNorm1d as BatchNorm1d,
    BatchNorm2d as BatchNorm2d,
    BatchNorm3d as BatchNorm3d,
    GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d,
    InstanceNorm2d as InstanceNorm2d,
    InstanceNorm3d as InstanceNorm3d,
    LayerNorm as LayerNorm,
    LocalResponseNorm as LocalResponseNorm,
    RMSNorm as RMSNorm,
)
from burn.nn.pool import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveAvgPool3d as AdaptiveAvgPool3d,
    AvgPool1d as AvgPool1d,
    AvgPool2d as AvgPool2d,
    AvgPool3d as AvgPool3d,
    GlobalAvgPool as GlobalAvgPool,
    MaxPool1d as MaxPool1d,
    MaxPool2d as MaxPool2d,
    MaxPool3d as MaxPool3d,
)
from burn.nn.random import (
    Bernoulli as Bernoulli,
    Multinomial as Multinomial,
    RandomNormal as RandomNormal,
    RandomNormalLike as RandomNormalLike,
    RandomState as RandomState,
    RandomUniform as RandomUniform,
    RandomUniformLike as RandomUniformLike,
)
from burn.nn.rnn import GRU as GRU, LSTM as LSTM, RNN as RNN, Recurrent as Recurrent
from burn.nn.summary import Summary as Summary, summary as summary
from burn.nn.transformer import (
    MultiheadAttention as MultiheadAttention,
    PositionalEncoding as PositionalEncoding,
    RotaryEmbedding as RotaryEmbedding,
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from burn.nn.transforms.checkpointing import (
    checkpoint as checkpoint,
    checkpointed as checkpointed,
)
from burn.nn.transforms.lora import lora as lora, merge_lora as merge_lora
from burn.nn.transforms.output_dropout import dropout as dropout
from burn.nn.trees import TreeEnsemble as TreeEnsemble

if TYPE_CHECKING:
    from burn.store import WeightsError as WeightsError
else:
    __getattr__, __dir__ = lazy_names(__name__, {"burn.store": ("WeightsError",)})
