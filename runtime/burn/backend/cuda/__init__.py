"""CUDA devices: CuPy arrays, kernels of NVIDIA's libraries, and generated kernels.

:mod:`burn.backend.cuda.kernels.registration` registers the device kernels of
primitives. It is imported when the first device is opened, so that ``import burn``
needs no CUDA library.
"""

from typing import Any

from burn.backend.cuda.device import Cuda

__all__ = ["Cuda"]


def _bind(plan: Any, device: Cuda) -> Any:
    """Return the CUDA graphs of a plan, or an executable that launches each kernel."""
    from burn.backend.cuda.graphs.branches import bound

    return bound(plan, device)


def _load_kernels() -> None:
    from burn.backend.cuda.kernels import registration

    del registration  # imported to register them


Cuda.binder = staticmethod(_bind)
Cuda.load_kernels = staticmethod(_load_kernels)
