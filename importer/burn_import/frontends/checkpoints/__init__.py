"""Weights of PyTorch, read without PyTorch and without running what a file says.

====================  ======================================================
``read(path)``        the tensors of a file as a lazy :class:`Checkpoint`
``open_store(path)``  the same to be loaded into a module (``burn.store``)
====================  ======================================================

Pickles are programs. Here a closed machine follows them (:mod:`.machine`), whose only
calls are those of a table (:mod:`.calls`); all else is data that does nothing.
"""

from burn_import.frontends.checkpoints.checkpoint import Checkpoint, LazyTensor
from burn_import.frontends.checkpoints.limits import LIMITS, Limits
from burn_import.frontends.checkpoints.reader import read
from burn_import.frontends.checkpoints.store import open_store
from burn_import.frontends.checkpoints.tensors import Quantization

__all__ = [
    "LIMITS",
    "Checkpoint",
    "LazyTensor",
    "Limits",
    "Quantization",
    "open_store",
    "read",
]
