"""Arrays of a file's tensors; views of the mapped file where possible.

Encodings: https://onnx.ai/onnx/repo-docs/IR.html and the comments of ``TensorProto``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn_import.foreign import AGAIN
from burn_import.frontends.onnx.files import ExternalFiles
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel
from burn_ir.ops.support import ELEMENT_TYPES
from burn_ir.types import Array

if TYPE_CHECKING:
    from onnx import SparseTensorProto, TensorProto

MAX_RANK = 64
#: Largest size in bytes of a sparse tensor after conversion to a dense one.
MAX_DENSE = 2**28

_EXTERNAL = 1
_STRING, _BOOL = 8, 9
_UNSUPPORTED = {27: "FLOAT6E2M3", 28: "FLOAT6E3M2"}


@dataclass(frozen=True)
class Encoding:
    """Encoding of a dtype: bits per element, and the typed data field.

    ``carrier`` is the unsigned dtype to which numbers of that field are truncated.
    """

    dtype: DType
    field: str
    bits: int
    carrier: DType | None = None


def _encodings() -> dict[int, Encoding]:
    u1, u2 = np.dtype("u1"), np.dtype("<u2")
    table: dict[int, tuple[str, int, DType | None]] = {
        1: ("float_data", 32, None),
        6: ("int32_data", 32, None),
        7: ("int64_data", 64, None),
        11: ("double_data", 64, None),
        12: ("uint64_data", 32, np.dtype("<u4")),
        13: ("uint64_data", 64, None),
        14: ("float_data", 64, None),
        15: ("double_data", 128, None),
        _STRING: ("string_data", 0, None),
    }
    for numbers, bits, carrier in (
        ((4, 5, 10, 16), 16, u2),
        ((2, 3, _BOOL, 17, 18, 19, 20, 24), 8, u1),
        ((21, 22, 23), 4, u1),
        ((25, 26), 2, u1),
    ):
        table |= dict.fromkeys(numbers, ("int32_data", bits, carrier))
    return {k: Encoding(ELEMENT_TYPES[k], *table[k]) for k in ELEMENT_TYPES}


ENCODINGS = _encodings()
_FIELDS = sorted({encoding.field for encoding in ENCODINGS.values()})


def dtype_of(code: int, where: str) -> DType:
    """Return the dtype of an ONNX type code; ``where`` is the context for errors."""
    return _encoding(code, where).dtype


def _encoding(code: int, where: str) -> Encoding:
    if code in _UNSUPPORTED:
        raise UnsupportedModel(f"{where}: dtype {_UNSUPPORTED[code]} is not supported")
    if code not in ENCODINGS:
        raise InvalidModel(f"{where}: expected a dtype of ONNX, got number {code}")
    return ENCODINGS[code]


class Tensors:
    """Reader of the tensors of one model, whose mapped file is ``file``."""

    def __init__(self, file: memoryview, external: ExternalFiles) -> None:
        self.file = file
        self.external = external

    def array(self, tensor: TensorProto, where: str = "") -> Array:
        """Return the read-only array of a tensor; strings are objects of ``str``.

        Raises:
            InvalidModel: dims, dtype and data contradict each other.
            UnreadableFile: its external file cannot be read.
            UnsupportedModel: the dtype is not supported.
        """
        where = f"tensor {tensor.name!r}" if tensor.name else where or "tensor"
        encoding = _encoding(tensor.data_type, where)
        shape = _shape(tensor.dims, where)
        self._one_source(tensor, encoding, where)
        if tensor.data_type == _STRING:
            array = _strings(tensor, where)
        elif tensor.data_location == _EXTERNAL or tensor.HasField("segment"):
            array = self._raw(tensor, encoding, math.prod(shape), where)
        else:
            array = _typed_elements(tensor, encoding)
        array = _unpack(array, encoding, math.prod(shape))
        return _reshape(array, shape, where)

    def sparse(self, tensor: SparseTensorProto, where: str = "") -> Array:
        """Return the dense array of a sparse tensor, at most 256 MB.

        Raises:
            InvalidModel: indices, values and dims contradict each other.
            UnsupportedModel: the dense array would be larger than that.
        """
        name = tensor.values.name
        where = f"sparse tensor {name!r}" if name else where or "sparse tensor"
        values = self.array(tensor.values, where)
        indices = self.array(tensor.indices, where)
        shape = _shape(tensor.dims, where)
        size = math.prod(shape)
        if size * max(values.itemsize, 1) > MAX_DENSE:
            raise UnsupportedModel(
                f"{where}: expected at most {MAX_DENSE} bytes once dense, "
                f"got {size * values.itemsize}"
            )
        flat = _flat_indices(indices, values, shape, where)
        fill: Any = "" if values.dtype == dtypes.string else 0
        dense = np.full(size, fill, values.dtype)
        dense[flat] = values
        return _reshape(dense, shape, where)

    def _one_source(self, tensor: TensorProto, encoding: Encoding, where: str) -> None:
        """Check that the data is in one field, the right one for the dtype."""
        fields = [field for field in _FIELDS if len(getattr(tensor, field))]
        if tensor.HasField("segment"):
            fields.append("raw_data")
        allowed = {encoding.field, "raw_data"}
        if tensor.data_location == _EXTERNAL:
            allowed = set()
        elif tensor.data_type == _STRING:
            allowed = {encoding.field}
        if len(fields) > 1 or not set(fields) <= allowed:
            expected = " or ".join(sorted(allowed)) or "an external file"
            raise InvalidModel(
                f"{where}: expected its data in {expected}, got {', '.join(fields)}"
            )

    def _raw(
        self, tensor: TensorProto, encoding: Encoding, count: int, where: str
    ) -> Array:
        """Return the raw bytes of ``count`` elements, packed or as elements."""
        expected = -(-count * encoding.bits // 8)
        if tensor.data_location == _EXTERNAL:
            data = self._external(tensor, expected, where)
        else:
            data = self.file[tensor.segment.begin : tensor.segment.end]
        if len(data) != expected:
            raise InvalidModel(
                f"{where}: expected {expected} bytes for dims {list(tensor.dims)} of "
                f"{dtypes.name_of(encoding.dtype)}, got {len(data)}"
            )
        packed = encoding.bits < 8 or tensor.data_type == _BOOL
        return np.frombuffer(data, np.dtype("u1") if packed else encoding.dtype)

    def _external(self, tensor: TensorProto, expected: int, where: str) -> memoryview:
        if tensor.data_type == _STRING:
            raise InvalidModel(f"{where}: strings cannot be stored in another file")
        entries = {e.key: e.value for e in tensor.external_data if e.key in _KEYS}
        location = entries.get("location", "")
        data = self.external.open(location, tensor.name)
        offset = _number(entries.get("offset", "0"), "offset", where)
        length = _number(entries.get("length", str(expected)), "length", where)
        if offset + length > len(data):
            raise UnreadableFile(
                f"{where}: expected bytes {offset} to {offset + length} of "
                f"{location!r}, which has {len(data)}; the file is another one or cut "
                "off",
                AGAIN,
            )
        return data[offset : offset + length]


_KEYS = ("location", "offset", "length", "checksum", "basepath")


def _number(text: str, key: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidModel(f"{where}: expected a number as {key}, got {text!r}")
    return int(text)


def _shape(dims: Any, where: str) -> tuple[int, ...]:
    shape = tuple(int(dim) for dim in dims)
    if any(dim < 0 for dim in shape):
        raise InvalidModel(f"{where}: expected dims of 0 or more, got {list(shape)}")
    if len(shape) > MAX_RANK or math.prod(max(dim, 1) for dim in shape) >= 2**60:
        raise InvalidModel(
            f"{where}: its dims {list(shape)[:8]} are too large for memory"
        )
    return shape


def _reshape(array: Array, shape: tuple[int, ...], where: str) -> Array:
    if array.size != math.prod(shape):
        raise InvalidModel(
            f"{where}: expected {math.prod(shape)} elements for dims {list(shape)}, "
            f"got {array.size}"
        )
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _strings(tensor: TensorProto, where: str) -> Array:
    array = np.empty(len(tensor.string_data), object)
    for index, item in enumerate(tensor.string_data):
        try:
            array[index] = item.decode("utf-8")
        except UnicodeDecodeError:
            message = f"{where}: expected strings in UTF-8, got {item[:20]!r}"
            raise InvalidModel(message) from None
    return array


def _typed_elements(tensor: TensorProto, encoding: Encoding) -> Array:
    """Return the data of a typed field as elements, or as packed bytes."""
    if encoding.field == "int32_data":
        array: Array = np.array(tensor.int32_data, np.int32)
    elif encoding.field == "uint64_data":
        array = np.array(tensor.uint64_data, np.uint64)
    elif encoding.field == "int64_data":
        array = np.array(tensor.int64_data, np.int64)
    else:
        wide = encoding.field == "double_data"
        part = np.float64 if wide else np.float32
        array = np.array(tensor.double_data if wide else tensor.float_data, part)
        # Real and imaginary parts alternate; an odd count is reported later as a wrong
        # number of elements.
        return array if array.size % 2 else array.view(encoding.dtype)
    if encoding.carrier is None:
        return array
    array = array.astype(encoding.carrier)  # keeps the low bits
    whole = encoding.bits >= 8 and encoding.dtype != dtypes.bool_
    return array.view(encoding.dtype) if whole else array


def _unpack(array: Array, encoding: Encoding, count: int) -> Array:
    """Return an array with one element each for packed bits or boolean bytes."""
    if encoding.dtype == dtypes.bool_:
        # Any byte but 0 means true, but a NumPy bool must be 0 or 1.
        return array.view(np.bool_) if array.max(initial=0) <= 1 else array != 0
    if encoding.bits not in (2, 4):
        return array
    per_byte = 8 // encoding.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(encoding.bits)
    mask = np.uint8((1 << encoding.bits) - 1)
    parts = ((array[:, None] >> shifts) & mask).reshape(-1)
    if len(array) == -(-count // per_byte):  # the last byte may be padded
        parts = parts[:count]
    if encoding.dtype in dtypes.SIGNED:
        sign = np.uint8(1 << (encoding.bits - 1))
        parts = (parts ^ sign).astype(np.int8) - np.int8(sign)
    elif encoding.dtype in dtypes.FLOATS:
        return np.asarray(parts.view(encoding.dtype))
    return np.asarray(parts.astype(encoding.dtype))


def _flat_indices(
    indices: Array, values: Array, shape: tuple[int, ...], where: str
) -> Array:
    """Return the flat indices of a sparse tensor's values in the dense array."""
    count = values.size
    if values.ndim != 1 or indices.dtype != np.int64:
        raise InvalidModel(f"{where}: expected values of rank 1 and int64 indices")
    if indices.shape not in ((count,), (count, len(shape))):
        raise InvalidModel(
            f"{where}: expected indices of shape [{count}] or [{count}, {len(shape)}], "
            f"got {list(indices.shape)}"
        )
    limits = np.array(shape if indices.ndim == 2 else [math.prod(shape)], np.int64)
    table = (
        indices.reshape(count, -1) if count else np.empty((0, len(limits)), np.int64)
    )
    if ((table < 0) | (table >= limits)).any():
        raise InvalidModel(f"{where}: an index is outside dims {list(shape)}")
    if indices.ndim == 1:
        return table[:, 0]
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.asarray(table @ np.array(strides, np.int64))
