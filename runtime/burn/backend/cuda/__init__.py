"""CUDA devices: CuPy arrays, kernels of NVIDIA's libraries, and generated kernels.

:mod:`burn.backend.cuda.kernels` registers the device kernels of primitives. It is
imported when the first device is opened, so that ``import burn`` needs no CUDA library.
"""

from burn.backend.cuda.device import Cuda as Cuda
