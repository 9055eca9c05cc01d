"""Records of standalone modules: safetensors files, read as a whole."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from burn.record.dtypes import DTYPES
from burn.record.errors import RecordError


def read_record(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays by key in the bytes of a safetensors file.

    Raises:
        RecordError: it is damaged, or has tensors of a dtype that NumPy lacks.
    """
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise RecordError(f"expected a safetensors file, got {len(data)} bytes")
    try:
        header = json.loads(data[8 : 8 + size])
        return {
            key: _array(key, entry, memoryview(data)[8 + size :])
            for key, entry in header.items()
            if key != "__metadata__"
        }
    except (KeyError, AttributeError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"expected a safetensors file: {error}") from None


def _array(key: str, entry: dict[str, Any], data: memoryview) -> np.ndarray[Any, Any]:
    """One tensor, as a view of the bytes behind the header."""
    dtype = DTYPES.get(entry["dtype"])
    if dtype is None:
        raise RecordError(f"{key}: expected a dtype of NumPy, got {entry['dtype']}")
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(data):
        raise RecordError(f"{key}: expected {end} bytes, got {len(data)}: truncated")
    return np.frombuffer(data[begin:end], dtype).reshape(entry["shape"])
