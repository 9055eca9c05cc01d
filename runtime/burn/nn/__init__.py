"""Modules and layers, with PyTorch's names, layouts and keys."""

from typing import TYPE_CHECKING

from burn.attribute_hints import LAYERS
from burn.box import Buffer as Buffer, Parameter as Parameter
from burn.lazy import lazy_names, public_names
from burn.nn import init as init
from burn.nn.autocast import Precision as Precision, autocast as autocast
from burn.nn.containers.sequences import (
    ModuleList as ModuleList,
    ModuleTuple as ModuleTuple,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from burn.nn.dropout import (
    AlphaDropout as AlphaDropout,
    Dropout as Dropout,
    Dropout1d as Dropout1d,
    Dropout2d as Dropout2d,
    Dropout3d as Dropout3d,
    DynamicDropout as DynamicDropout,
)
from burn.nn.init import buffer as buffer, parameter as parameter
from burn.nn.inputs import InputError as InputError, check_inputs as check_inputs
from burn.nn.modes import inference as inference
from burn.nn.module import Module as Module
from burn.nn.summary import Summary as Summary, summary as summary
from burn.nn.transforms.output_dropout import dropout as dropout

# Layers are imported with the first module that has one. A name that is also that of a
# module here (``dropout``) is imported above, or the module would take its place.
if TYPE_CHECKING:
    from burn.nn.activations import (
        CELU as CELU,
        ELU as ELU,
        GELU as GELU,
        GLU as GLU,
        SELU as SELU,
        Hardshrink as Hardshrink,
        Hardsigmoid as Hardsigmoid,
        Hardswish as Hardswish,
        Hardtanh as Hardtanh,
        Identity as Identity,
        LeakyReLU as LeakyReLU,
        LogSigmoid as LogSigmoid,
        LogSoftmax as LogSoftmax,
        Mish as Mish,
        PReLU as PReLU,
        ReLU as ReLU,
        ReLU6 as ReLU6,
        Sigmoid as Sigmoid,
        SiLU as SiLU,
        Softmax as Softmax,
        Softmax2d as Softmax2d,
        Softmin as Softmin,
        Softplus as Softplus,
        Softshrink as Softshrink,
        Softsign as Softsign,
        Tanh as Tanh,
        Tanhshrink as Tanhshrink,
        Threshold as Threshold,
    )
    from burn.nn.cells import (
        GRUCell as GRUCell,
        LSTMCell as LSTMCell,
        RNNCell as RNNCell,
    )
    from burn.nn.containers.dicts import (
        ModuleDict as ModuleDict,
        ParameterDict as ParameterDict,
    )
    from burn.nn.conv import (
        Conv1d as Conv1d,
        Conv2d as Conv2d,
        Conv3d as Conv3d,
        ConvTranspose1d as ConvTranspose1d,
        ConvTranspose2d as ConvTranspose2d,
        ConvTranspose3d as ConvTranspose3d,
        DeformConv2d as DeformConv2d,
    )
    from burn.nn.distances import (
        CosineSimilarity as CosineSimilarity,
        PairwiseDistance as PairwiseDistance,
    )
    from burn.nn.embedding import Embedding as Embedding, EmbeddingBag as EmbeddingBag
    from burn.nn.linear import (
        Bilinear as Bilinear,
        Conv1D as Conv1D,
        Linear as Linear,
        SwiGLU as SwiGLU,
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
    from burn.nn.quantized.dynamic import (
        DynamicQuantizedConv1d as DynamicQuantizedConv1d,
        DynamicQuantizedConv2d as DynamicQuantizedConv2d,
        DynamicQuantizedConv3d as DynamicQuantizedConv3d,
        DynamicQuantizedLinear as DynamicQuantizedLinear,
        QuantizedLinear as QuantizedLinear,
    )
    from burn.nn.quantized.qlinear import (
        QLinearConv1d as QLinearConv1d,
        QLinearConv2d as QLinearConv2d,
        QLinearConv3d as QLinearConv3d,
        QLinearMatMul as QLinearMatMul,
    )
    from burn.nn.quantized.weights import (
        QuantizeDequantize as QuantizeDequantize,
        WeightQuantizedConv1d as WeightQuantizedConv1d,
        WeightQuantizedConv2d as WeightQuantizedConv2d,
        WeightQuantizedConv3d as WeightQuantizedConv3d,
        WeightQuantizedEmbedding as WeightQuantizedEmbedding,
        WeightQuantizedLinear as WeightQuantizedLinear,
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
    from burn.nn.space.arrangement import (
        ChannelShuffle as ChannelShuffle,
        Flatten as Flatten,
        Fold as Fold,
        PixelShuffle as PixelShuffle,
        PixelUnshuffle as PixelUnshuffle,
        Unflatten as Unflatten,
        Unfold as Unfold,
    )
    from burn.nn.space.padding import (
        CircularPad1d as CircularPad1d,
        CircularPad2d as CircularPad2d,
        CircularPad3d as CircularPad3d,
        ConstantPad1d as ConstantPad1d,
        ConstantPad2d as ConstantPad2d,
        ConstantPad3d as ConstantPad3d,
        ReflectionPad1d as ReflectionPad1d,
        ReflectionPad2d as ReflectionPad2d,
        ReflectionPad3d as ReflectionPad3d,
        ReplicationPad1d as ReplicationPad1d,
        ReplicationPad2d as ReplicationPad2d,
        ReplicationPad3d as ReplicationPad3d,
        ZeroPad1d as ZeroPad1d,
        ZeroPad2d as ZeroPad2d,
        ZeroPad3d as ZeroPad3d,
    )
    from burn.nn.space.pooling import (
        AdaptiveMaxPool1d as AdaptiveMaxPool1d,
        AdaptiveMaxPool2d as AdaptiveMaxPool2d,
        AdaptiveMaxPool3d as AdaptiveMaxPool3d,
        LPPool1d as LPPool1d,
        LPPool2d as LPPool2d,
        LPPool3d as LPPool3d,
    )
    from burn.nn.space.upsampling import (
        Upsample as Upsample,
        UpsamplingBilinear2d as UpsamplingBilinear2d,
        UpsamplingNearest2d as UpsamplingNearest2d,
    )
    from burn.nn.transformer import (
        Attention as Attention,
        DecoderLayerCache as DecoderLayerCache,
        KeyValueCache as KeyValueCache,
        MultiheadAttention as MultiheadAttention,
        PositionalEncoding as PositionalEncoding,
        RotaryEmbedding as RotaryEmbedding,
        Transformer as Transformer,
        TransformerCache as TransformerCache,
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
    from burn.nn.transforms.statistics import freeze_statistics as freeze_statistics
    from burn.nn.trees import TreeEnsemble as TreeEnsemble
    from burn.store import WeightsError as WeightsError
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "burn.nn.activations": (
                "CELU",
                "ELU",
                "GELU",
                "GLU",
                "SELU",
                "Hardshrink",
                "Hardsigmoid",
                "Hardswish",
                "Hardtanh",
                "Identity",
                "LeakyReLU",
                "LogSigmoid",
                "LogSoftmax",
                "Mish",
                "PReLU",
                "ReLU",
                "ReLU6",
                "Sigmoid",
                "SiLU",
                "Softmax",
                "Softmax2d",
                "Softmin",
                "Softplus",
                "Softshrink",
                "Softsign",
                "Tanh",
                "Tanhshrink",
                "Threshold",
            ),
            "burn.nn.cells": ("GRUCell", "LSTMCell", "RNNCell"),
            "burn.nn.containers.dicts": ("ModuleDict", "ParameterDict"),
            "burn.nn.conv": (
                "Conv1d",
                "Conv2d",
                "Conv3d",
                "ConvTranspose1d",
                "ConvTranspose2d",
                "ConvTranspose3d",
                "DeformConv2d",
            ),
            "burn.nn.distances": ("CosineSimilarity", "PairwiseDistance"),
            "burn.nn.embedding": ("Embedding", "EmbeddingBag"),
            "burn.nn.linear": ("Bilinear", "Conv1D", "Linear", "SwiGLU"),
            "burn.nn.norm": (
                "BatchNorm1d",
                "BatchNorm2d",
                "BatchNorm3d",
                "GroupNorm",
                "InstanceNorm1d",
                "InstanceNorm2d",
                "InstanceNorm3d",
                "LayerNorm",
                "LocalResponseNorm",
                "RMSNorm",
            ),
            "burn.nn.pool": (
                "AdaptiveAvgPool1d",
                "AdaptiveAvgPool2d",
                "AdaptiveAvgPool3d",
                "AvgPool1d",
                "AvgPool2d",
                "AvgPool3d",
                "GlobalAvgPool",
                "MaxPool1d",
                "MaxPool2d",
                "MaxPool3d",
            ),
            "burn.nn.quantized.dynamic": (
                "DynamicQuantizedConv1d",
                "DynamicQuantizedConv2d",
                "DynamicQuantizedConv3d",
                "DynamicQuantizedLinear",
                "QuantizedLinear",
            ),
            "burn.nn.quantized.qlinear": (
                "QLinearConv1d",
                "QLinearConv2d",
                "QLinearConv3d",
                "QLinearMatMul",
            ),
            "burn.nn.quantized.weights": (
                "QuantizeDequantize",
                "WeightQuantizedConv1d",
                "WeightQuantizedConv2d",
                "WeightQuantizedConv3d",
                "WeightQuantizedEmbedding",
                "WeightQuantizedLinear",
            ),
            "burn.nn.random": (
                "Bernoulli",
                "Multinomial",
                "RandomNormal",
                "RandomNormalLike",
                "RandomState",
                "RandomUniform",
                "RandomUniformLike",
            ),
            "burn.nn.rnn": ("GRU", "LSTM", "RNN", "Recurrent"),
            "burn.nn.space.arrangement": (
                "ChannelShuffle",
                "Flatten",
                "Fold",
                "PixelShuffle",
                "PixelUnshuffle",
                "Unflatten",
                "Unfold",
            ),
            "burn.nn.space.padding": (
                "CircularPad1d",
                "CircularPad2d",
                "CircularPad3d",
                "ConstantPad1d",
                "ConstantPad2d",
                "ConstantPad3d",
                "ReflectionPad1d",
                "ReflectionPad2d",
                "ReflectionPad3d",
                "ReplicationPad1d",
                "ReplicationPad2d",
                "ReplicationPad3d",
                "ZeroPad1d",
                "ZeroPad2d",
                "ZeroPad3d",
            ),
            "burn.nn.space.pooling": (
                "AdaptiveMaxPool1d",
                "AdaptiveMaxPool2d",
                "AdaptiveMaxPool3d",
                "LPPool1d",
                "LPPool2d",
                "LPPool3d",
            ),
            "burn.nn.space.upsampling": (
                "Upsample",
                "UpsamplingBilinear2d",
                "UpsamplingNearest2d",
            ),
            "burn.nn.transformer": (
                "Attention",
                "DecoderLayerCache",
                "KeyValueCache",
                "MultiheadAttention",
                "PositionalEncoding",
                "RotaryEmbedding",
                "Transformer",
                "TransformerCache",
                "TransformerDecoder",
                "TransformerDecoderLayer",
                "TransformerEncoder",
                "TransformerEncoderLayer",
            ),
            "burn.nn.transforms.checkpointing": ("checkpoint", "checkpointed"),
            "burn.nn.transforms.lora": ("lora", "merge_lora"),
            "burn.nn.transforms.statistics": ("freeze_statistics",),
            "burn.nn.trees": ("TreeEnsemble",),
            "burn.store": ("WeightsError",),
        },
        LAYERS.get,
    )
    # Type checkers read ``X as X`` above.
    __all__ = ["Precision", "init", *public_names(__name__, __dir__)]
