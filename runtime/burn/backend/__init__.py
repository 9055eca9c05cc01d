"""The backends: host memory, CUDA devices, and autodiff over either of them."""

from burn.backend.autodiff import Autodiff, Gradients
from burn.backend.base import Backend
from burn.backend.cpu import Cpu
from burn.backend.cpu.onednn.binding.engine import Engine, engine, numpy_only
from burn.backend.cuda import Cuda

__all__ = [
    "Autodiff",
    "Backend",
    "Cpu",
    "Cuda",
    "Engine",
    "Gradients",
    "engine",
    "numpy_only",
]
