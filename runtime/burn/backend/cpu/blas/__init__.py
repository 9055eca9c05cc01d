"""Kernels for CPU plans without oneDNN: BLAS and NumPy on cache-sized tiles, and calls
that become generated kernels.
"""

from burn.backend.cpu.blas import attention, expansion, linear
from burn.backend.cpu.blas.convolution import KERNELS

__all__ = ["KERNELS", "attention", "expansion", "linear"]
