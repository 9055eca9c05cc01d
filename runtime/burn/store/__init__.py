"""Stores: load weight files into hand-written modules, and save them.

==========================  ====================================================
``Store.from_file(path)``   a record, sharded or not, to load from or save to
``Store.from_tensors(t)``   tensors by key, such as another module's
``Report``                  the outcome of a load for every key
==========================  ====================================================

``burn_import.pytorch`` has a store with the same methods for PyTorch files.
"""

from burn.store.report import Report, Row, WeightsError
from burn.store.store import Origin, Predicate, Store
from burn.store.tensor_matching import fit
from burn.store.tensors import Content, InMemory, StoredTensor

__all__ = [
    "Content",
    "InMemory",
    "Origin",
    "Predicate",
    "Report",
    "Row",
    "Store",
    "StoredTensor",
    "WeightsError",
    "fit",
]
