"""Stores: weights of files into modules that were written by hand, and back.

==========================  ====================================================
``Store.from_file(path)``   a record, or one in shards, to load from or save to
``Store.from_tensors(t)``   tensors by key, such as another module's
``Report``                  what became of every key
==========================  ====================================================

Files of PyTorch have a store with the same methods in ``burn_import.pytorch``.
"""

from burn.store.fit import fit
from burn.store.report import Report, Row, WeightsError
from burn.store.store import Origin, Predicate, Store
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
