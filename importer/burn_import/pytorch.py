"""PyTorch weight files: ``read`` returns a lazy checkpoint, ``open_store`` a store.

See :mod:`burn_import.frontends.checkpoints`.
"""

from burn_import.frontends.checkpoints import (
    LIMITS,
    Checkpoint,
    LazyTensor,
    Limits,
    Quantization,
    open_store,
    read,
)

__all__ = [
    "LIMITS",
    "Checkpoint",
    "LazyTensor",
    "Limits",
    "Quantization",
    "open_store",
    "read",
]
