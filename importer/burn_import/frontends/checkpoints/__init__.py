"""Reader of PyTorch weights, without PyTorch and without executing the file.

====================  ======================================================
``read(path)``        the tensors of a file as a lazy :class:`Checkpoint`
``open_store(path)``  the same as a store to load modules from (``burn.store``)
====================  ======================================================

A pickle is a program. Here an interpreter (:mod:`.unpickler`) follows it and calls only
the functions of a closed table (:mod:`.pickle_globals`); everything else becomes inert
data.
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
