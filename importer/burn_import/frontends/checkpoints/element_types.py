"""Element types of PyTorch: names, storages, and NumPy dtypes.

Quantized types are read as the integers that they are stored as; the scales are stored
with the tensor. Types without a NumPy or ml_dtypes equivalent have a size and no dtype.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from burn.dtypes import DType


@dataclass(frozen=True)
class Element:
    """A dtype of PyTorch: its name, NumPy dtype, and bytes per element."""

    name: str
    size: int
    dtype: DType | None


def _table() -> dict[str, Element]:
    same = ("float64", "float32", "float16", "complex128", "complex64", "bool")
    integers = [f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)]
    table = {name: np.dtype(name) for name in (*same, *integers)}
    table |= {"qint8": np.dtype("i1"), "quint8": np.dtype("u1")}
    table["qint32"] = np.dtype("i4")
    for name in (
        *("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
        *("float8_e5m2fnuz", "float8_e8m0fnu"),
    ):
        table[name] = np.dtype(getattr(ml_dtypes, name))
    types = {
        name: Element(name, dtype.itemsize, dtype) for name, dtype in table.items()
    }
    sizes = {"complex32": 4, "quint4x2": 1, "quint2x4": 1, "float4_e2m1fn_x2": 1}
    sizes |= {"bits8": 1, "bits16": 2, "bits1x8": 1, "bits2x4": 1, "bits4x2": 1}
    return types | {name: Element(name, size, None) for name, size in sizes.items()}


#: Element types by name after ``torch.``.
ELEMENTS = _table()

_STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "ComplexHalf": "complex32",
    "QInt8": "qint8",
    "QUInt8": "quint8",
    "QInt32": "qint32",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
}
#: Element types by name of the storage class; ``UntypedStorage`` has bytes.
STORAGES = {f"{name}Storage": ELEMENTS[kind] for name, kind in _STORAGES.items()}
STORAGES["UntypedStorage"] = ELEMENTS["uint8"]
STORAGE_MODULES = ("torch", "torch.cuda", "torch.storage")
