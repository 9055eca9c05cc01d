"""The kernels of CPU plans without oneDNN, which their modules add to a table."""

from burn.backend.cpu.blas import attention, expansion, integers, linear
from burn.backend.cpu.blas.convolution import KERNELS

__all__ = ["KERNELS", "attention", "expansion", "integers", "linear"]
