"""burn: tensors, automatic differentiation and neural networks, small and fast.

``tensor``, ``from_numpy``     make tensors
``ops``                        every operation on them
``Cpu``, ``Cuda``, ``Autodiff``  where they live and whether they are differentiated
``nn``                         modules and layers
``record``                     files of weights
"""

from burn import dtypes, methods, nn, ops, record
from burn.backend import Autodiff, Backend, Cpu, Cuda, Gradients
from burn.box import Box, Buffer, Parameter
from burn.dtypes import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from burn.tensor import Tensor, from_numpy, tensor

bool_ = dtypes.bool_

__all__ = [
    "Autodiff",
    "Backend",
    "Box",
    "Buffer",
    "Cpu",
    "Cuda",
    "Gradients",
    "Parameter",
    "Tensor",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "dtypes",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "int8",
    "int16",
    "int32",
    "int64",
    "methods",
    "nn",
    "ops",
    "record",
    "string",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
