"""Modules and layers, with PyTorch's names, layouts and keys."""

from burn.box import Buffer, Parameter
from burn.nn import init
from burn.nn.init import buffer, parameter
from burn.nn.module import Module, ModuleDict, ModuleList, Sequential, WeightsError

__all__ = [
    "Buffer",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "Sequential",
    "WeightsError",
    "buffer",
    "init",
    "parameter",
]
