"""The backends: host memory, CUDA devices, and automatic differentiation over either."""

from burn.backend.autodiff import Autodiff, Gradients
from burn.backend.base import Backend
from burn.backend.cpu import Cpu
from burn.backend.cuda import Cuda

__all__ = ["Autodiff", "Backend", "Cpu", "Cuda", "Gradients"]
