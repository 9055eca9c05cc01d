"""burn: tensors, automatic differentiation and neural networks.

``tensor``, ``from_numpy``     create tensors
``ops``                        operations on tensors
``Cpu``, ``Cuda``, ``Autodiff``  devices, and the backend that records gradients
``compile``                    compiles functions to plans
``nn``                         modules and layers
``record``                     reads and writes weight files
``store``                      loads weights of other frameworks into modules
"""

from typing import TYPE_CHECKING

from burn.lazy import function_hint, keep_functions, lazy_names

if TYPE_CHECKING:
    from burn import dtypes, methods, nn, ops, record, store
    from burn.backend import Autodiff, Backend, Cpu, Cuda, Gradients
    from burn.box import Box, Buffer, Parameter
    from burn.dtypes import (
        bfloat16,
        bool_,
        complex64,
        complex128,
        finfo,
        float4_e2m1fn,
        float8_e4m3fn,
        float8_e4m3fnuz,
        float8_e5m2,
        float8_e5m2fnuz,
        float8_e8m0fnu,
        float16,
        float32,
        float64,
        int2,
        int4,
        int8,
        int16,
        int32,
        int64,
        string,
        uint2,
        uint4,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from burn.plan import compile
    from burn.tensor import Tensor, from_numpy, tensor
    from burn.version import require_version
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "burn": ("dtypes", "methods", "nn", "ops", "record", "store"),
            "burn.backend": ("Autodiff", "Backend", "Cpu", "Cuda", "Gradients"),
            "burn.box": ("Box", "Buffer", "Parameter"),
            "burn.dtypes": (
                "bfloat16",
                "bool_",
                "complex64",
                "complex128",
                "finfo",
                "float4_e2m1fn",
                "float8_e4m3fn",
                "float8_e4m3fnuz",
                "float8_e5m2",
                "float8_e5m2fnuz",
                "float8_e8m0fnu",
                "float16",
                "float32",
                "float64",
                "int2",
                "int4",
                "int8",
                "int16",
                "int32",
                "int64",
                "string",
                "uint2",
                "uint4",
                "uint8",
                "uint16",
                "uint32",
                "uint64",
            ),
            "burn.plan": ("compile",),
            "burn.tensor": ("Tensor", "from_numpy", "tensor"),
            "burn.version": ("require_version",),
        },
        function_hint,
    )
    keep_functions(__name__, "tensor")

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
    "compile",
    "complex128",
    "complex64",
    "dtypes",
    "finfo",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "from_numpy",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "methods",
    "nn",
    "ops",
    "record",
    "require_version",
    "store",
    "string",
    "tensor",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
]
