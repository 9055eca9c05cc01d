"""The element types of safetensors, and their NumPy dtypes.

Half and quarter precision types come from ``ml_dtypes``. ``F4`` is the one type whose
representation differs: the file packs two elements in a byte, the first in the low
half, while ``ml_dtypes`` uses a byte per element.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType: TypeAlias = np.dtype[Any]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

PLAIN = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
    "C64": "<c8",
}

# Older releases of ml_dtypes lack the last ones; a record with such a tensor is
# then refused by name instead of failing at import.
EXTENDED = {
    "BF16": "bfloat16",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn",
}


def _dtypes() -> dict[str, DType]:
    table: dict[str, DType] = {tag: np.dtype(code) for tag, code in PLAIN.items()}
    for tag, name in EXTENDED.items():
        if hasattr(ml_dtypes, name):
            table[tag] = np.dtype(getattr(ml_dtypes, name))
    return table


DTYPES = _dtypes()
#: Integers of less than a byte: the format lacks them, so each takes a whole one.
CARRIED = {"int2": "I8", "int4": "I8", "uint2": "U8", "uint4": "U8"}
TAGS = {dtype.name: tag for tag, dtype in DTYPES.items()}


def recorded(dtype: DType) -> DType:
    """Return the dtype of a tensor of ``dtype`` in a record: its own, or a byte's."""
    carrier = CARRIED.get(dtype.name)
    return dtype if carrier is None else DTYPES[carrier]


def bits(tag: str) -> int:
    """Return the size of one element in the file, in bits."""
    return 4 if tag == "F4" else 8 * DTYPES[tag].itemsize


def unpack_f4(packed: Bytes) -> Bytes:
    """Return one byte per element, twice as many as packed bytes."""
    elements = np.empty(2 * packed.size, np.uint8)
    np.bitwise_and(packed, 0x0F, out=elements[0::2])
    np.right_shift(packed, 4, out=elements[1::2])
    return elements


def pack_f4(blocks: Iterable[Bytes]) -> Iterator[Bytes]:
    """Packed bytes of a stream of elements, two in a byte.

    A block of odd length leaves its last element for the next one; the total
    must be even, as the format asks.
    """
    rest = np.empty(0, np.uint8)
    for block in blocks:
        elements = np.concatenate([rest, block & 0x0F])
        even = elements.size - elements.size % 2
        rest = elements[even:]
        yield elements[0:even:2] | (elements[1:even:2] << 4)
