"""Shared parts of Burn's record formats: dtype names, ids, and metadata.

A tensor is ``{bytes, shape, dtype}``, a parameter ``{id, param}`` around one, and a
record ``{metadata, item}`` around all (burn-core's ``record``, burn-pack).
"""

import base64
from collections.abc import Mapping
from typing import Any

from burn.digests import sha256
from burn.record.cursor import Blob
from burn.record.errors import RecordError, shown
from burn.record.header import Entry, data_length
from burn.record.precision import Precision

#: Burn's dtypes in the order of its enum, by which binary records call them.
DTYPES = (
    *("F64", "F32", "Flex32", "F16", "BF16", "I64", "I32", "I16", "I8"),
    *("U64", "U32", "U16", "U8", "Bool"),
)
#: By Burn's name; Flex32 is float32 that may be computed with in less.
_TAGS = {name: name for name in DTYPES} | {"Flex32": "F32", "Bool": "BOOL"}
_NAMES = {name: name for name in DTYPES} | {"BOOL": "Bool"}
#: The storage of a bool, which is part of the dtype since Burn 0.21.
_NATIVE = "Native"
_BYTES = (_NATIVE, "U8")
_SETTINGS = "PrecisionSettings"
#: Burn's types of numbers at each precision.
_NUMBERS: dict[Precision, tuple[str, str]] = {
    "full": ("f32", "i32"),
    "half": ("half::binary16::f16", "i16"),
    "double": ("f64", "i64"),
}
#: The fields of Burn's metadata, in order.
FIELDS = ("float", "int", "format", "version", "settings")


def tag_of(dtype: Any) -> str:
    """Return the tag of a dtype in Burn's serialization: a name, or one with details.

    Raises:
        RecordError: NumPy does not have the dtype.
    """
    if isinstance(dtype, dict) and len(dtype) == 1:
        ((name, detail),) = dtype.items()
        if name == "Bool" and detail in _BYTES:
            return "BOOL"
        raise RecordError(f"dtype {shown(name)} ({shown(detail)}) cannot be read")
    if not isinstance(dtype, str) or dtype not in _TAGS:
        expected = ", ".join(DTYPES)
        raise RecordError(f"unknown dtype {shown(dtype)}, expected one of {expected}")
    return _TAGS[dtype]


def dtype_of(tag: str, name: str) -> str | dict[str, str]:
    """Return a dtype in Burn's serialization.

    Raises:
        RecordError: Burn does not have the dtype of the tensor ``name``.
    """
    if tag not in _NAMES:
        raise RecordError(f"tensor {shown(name)}: Burn has no dtype {tag}")
    return {"Bool": _NATIVE} if tag == "BOOL" else _NAMES[tag]


def entry(dtype: Any, shape: Any, data: Any) -> Entry:
    """Return the entry of a tensor, after checking that its parts are consistent.

    Raises:
        RecordError: they are not.
    """
    tag = tag_of(dtype)
    if not isinstance(shape, list) or any(type(dim) is not int for dim in shape):
        raise RecordError(f"shape must be a list of integers, got {shown(shape)}")
    if not isinstance(data, Blob):
        raise RecordError(f"expected the bytes of a tensor, got {shown(data)}")
    size = data_length(tag, tuple(shape))
    if data.end - data.begin != size:
        raise RecordError(
            f"{tag} of shape {shown(tuple(shape))} takes {size} bytes, "
            f"got {data.end - data.begin}"
        )
    return Entry(tag, tuple(shape), data.begin, data.end)


def id_of(name: str) -> int:
    """Return the parameter id of a key: a number that is unique to it."""
    digest = sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "little")


def id_text(name: str) -> str:
    """Return the id in Burn's text form: base 32, with the digits 0 to v."""
    digits = base64.b32hexencode(id_of(name).to_bytes(8, "little"))
    return digits.decode().rstrip("=").lower()


def metadata_of(
    kind: str, metadata: Mapping[str, str], precision: Precision | None
) -> dict[str, str]:
    """Return the metadata of a record: Burn's fields, then those of the user."""
    floats, integers = _NUMBERS[precision] if precision else ("", "")
    own = dict(
        zip(FIELDS, (floats, integers, kind, "", settings(precision)), strict=True)
    )
    return {**own, **{key: text for key, text in metadata.items() if key not in own}}


def settings(precision: Precision | None) -> str:
    """Return Burn's name of a precision."""
    return f"{precision.capitalize()}{_SETTINGS}" if precision else ""


def has_precision(metadata: Mapping[str, str]) -> bool:
    """Return whether a record was written at one of Burn's precisions."""
    return metadata.get("settings", "").endswith(_SETTINGS)
