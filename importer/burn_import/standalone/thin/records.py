"""Records of standalone modules: safetensors files, read as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.record.dtypes import DTYPES
from burn.record.header import Entry
from burn.record.safetensors import parse


def read_record(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays by key in the bytes of a safetensors file, as views of them.

    Raises:
        RecordError: it is damaged, or has tensors of a dtype that NumPy lacks.
    """
    header, contents = parse(np.frombuffer(data, np.uint8))
    return {key: _array(entry, contents) for key, entry in header.entries.items()}


def _array(entry: Entry, contents: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    part = contents[entry.begin : entry.end]
    return np.frombuffer(part.data, DTYPES[entry.tag]).reshape(entry.shape)
