"""The backends: host memory, CUDA devices, and autodiff over either of them."""

from typing import TYPE_CHECKING

from burn.backend.autodiff import Autodiff, Gradients
from burn.backend.base import Backend
from burn.backend.cpu import Cpu
from burn.backend.cuda import Cuda
from burn.lazy import lazy_names

_ENGINE = "burn.backend.cpu.onednn.binding.engine"
_CACHE = "burn.backend.disk_cache"

if TYPE_CHECKING:
    from burn.backend.cpu.onednn.binding.engine import Engine, engine, numpy_only
    from burn.backend.disk_cache import kernel_cache, set_kernel_cache
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            _ENGINE: ("Engine", "engine", "numpy_only"),
            _CACHE: ("kernel_cache", "set_kernel_cache"),
        },
    )

__all__ = [
    "Autodiff",
    "Backend",
    "Cpu",
    "Cuda",
    "Engine",
    "Gradients",
    "engine",
    "kernel_cache",
    "numpy_only",
    "set_kernel_cache",
]
