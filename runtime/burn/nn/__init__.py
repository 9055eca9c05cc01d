"""Modules and layers, with PyTorch's names, layouts and keys."""

from burn.box import Buffer, Parameter
from burn.nn import init
from burn.nn.module import Module, ModuleList, Sequential, WeightsError

__all__ = [
    "Buffer",
    "Module",
    "ModuleList",
    "Parameter",
    "Sequential",
    "WeightsError",
    "init",
]
