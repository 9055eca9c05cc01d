"""Activations as modules, for use as a field or in a ``Sequential``."""

from burn.nn.activations.basic import (
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
from burn.nn.activations.normalized import (
    GLU as GLU,
    LogSoftmax as LogSoftmax,
    Softmax2d as Softmax2d,
    Softmin as Softmin,
)
from burn.nn.activations.piecewise import (
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    ReLU6 as ReLU6,
    Softshrink as Softshrink,
    Threshold as Threshold,
)
from burn.nn.activations.smooth import (
    CELU as CELU,
    SELU as SELU,
    LogSigmoid as LogSigmoid,
    Mish as Mish,
    Softplus as Softplus,
    Softsign as Softsign,
    Tanhshrink as Tanhshrink,
)
