"""The JSON header of a safetensors file: checked parsing, and serialization.

A file is eight bytes of header length, the header, then the tensors' bytes without
holes or overlap. All claims of a header are checked before any tensor is read
(https://github.com/huggingface/safetensors#format).
"""

import json
from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple, NoReturn

from burn.record.dtypes import DTYPES, bits
from burn.record.errors import RecordError, check_values, joined, shown
from burn.record.files import MAX_HEADER

METADATA = "__metadata__"
ALIGNMENT = 64
MAX_RANK = 64
MAX_BYTES = 2**63 - 1
FIELDS = {"dtype", "shape", "data_offsets"}
_INTEGERS = frozenset({int})


class Entry(NamedTuple):
    """A tensor: its dtype tag, shape, and range in the data section."""

    tag: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """All tensors in the order of the header, and the file's metadata."""

    entries: dict[str, Entry]
    metadata: dict[str, str]


def data_length(tag: str, shape: tuple[int, ...]) -> int:
    """Return the number of bytes of a tensor in a file.

    Raises ``RecordError`` for a shape that no array can have: a negative dimension,
    more than 64 of them, or more than 2**63 - 1 bytes (dimensions of zero are excluded
    from this product, as in NumPy).
    """
    if shape and min(shape) < 0:
        raise RecordError(f"negative dimension in shape {shown(shape)}")
    if len(shape) > MAX_RANK:
        raise RecordError(f"rank {len(shape)}, expected at most {MAX_RANK}")
    product = prod(shape)
    nonzero = product or prod(dim or 1 for dim in shape)
    if nonzero * bits(tag) // 8 > MAX_BYTES:
        raise RecordError(f"size overflow: shape {shown(shape)} of {tag}")
    length, rest = divmod(product * bits(tag), 8)
    if rest:
        raise RecordError(f"{tag} of shape {shown(shape)} does not fill whole bytes")
    return length


def parse_header(raw: bytes, data_size: int) -> Header:
    """Return the header with the JSON ``raw``, for ``data_size`` bytes of tensors.

    Raises ``RecordError`` that lists every defect (without the file's name).
    """
    fields = _load_json(raw)
    problems: list[str] = []
    metadata = _metadata(fields.pop(METADATA, {}), problems)
    entries: dict[str, Entry] = {}
    for name, value in fields.items():
        try:
            _check_text(name)
            entries[name] = _entry(value, data_size)
        except RecordError as problem:
            problems.append(f"tensor {shown(name)}: {problem}")
    if not problems:
        problems = _layout_problems(entries, data_size)
    if problems:
        raise RecordError(joined(problems))
    return Header(entries, metadata)


def _load_json(raw: bytes) -> dict[str, Any]:
    if raw[:1] != b"{":
        raise RecordError(f"header must begin with '{{', got {shown(raw[:8])}")
    check_values(raw, "the header")
    try:
        return dict(
            json.loads(
                raw.decode("utf-8"),
                object_pairs_hook=_unique,
                parse_constant=_refuse_constant,
            )
        )
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"header is not JSON: {shown(str(error))}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object, or raise an error for a duplicate key, which is ambiguous."""
    result = dict(pairs)
    if len(result) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        key = next(key for key, count in counts.items() if count > 1)
        raise RecordError(f"duplicate key {shown(key)} in the header")
    return result


def _refuse_constant(text: str) -> NoReturn:
    raise RecordError(f"header is not JSON: it holds {text}")


def _metadata(value: Any, problems: list[str]) -> dict[str, str]:
    if not isinstance(value, dict):
        problems.append(f"{METADATA} must be an object of strings, got {shown(value)}")
        return {}
    for key, text in value.items():
        if not isinstance(text, str):
            problems.append(
                f"{METADATA} {shown(key)} must be a string, got {shown(text)}"
            )
    return value


def _entry(value: Any, data_size: int) -> Entry:
    if not isinstance(value, dict) or value.keys() != FIELDS:
        fields = sorted(value) if isinstance(value, dict) else value
        raise RecordError(f"expected the fields {sorted(FIELDS)}, got {shown(fields)}")
    tag = value["dtype"]
    if not isinstance(tag, str) or tag not in DTYPES:
        raise RecordError(
            f"unknown dtype {shown(tag)}, expected one of {', '.join(DTYPES)}"
        )
    shape = _integers("shape", value["shape"])
    expected = data_length(tag, shape)
    offsets = _integers("data_offsets", value["data_offsets"])
    if len(offsets) != 2:
        raise RecordError(f"expected two data_offsets, got {shown(offsets)}")
    begin, end = offsets
    if not 0 <= begin <= end <= data_size:
        raise RecordError(
            f"data_offsets {shown(offsets)} out of range: the file holds {data_size} "
            "bytes of data (is it truncated?)"
        )
    if end - begin != expected:
        raise RecordError(
            f"{tag} of shape {shown(shape)} takes {expected} bytes, "
            f"but data_offsets {shown(offsets)} span {end - begin}"
        )
    return Entry(tag, shape, begin, end)


def _integers(field: str, value: Any) -> tuple[int, ...]:
    # type() and not isinstance(): true and false are integers to Python.
    if not isinstance(value, list) or not _INTEGERS.issuperset(map(type, value)):
        raise RecordError(f"{field} must be a list of integers, got {shown(value)}")
    return tuple(value)


def _layout_problems(entries: Mapping[str, Entry], data_size: int) -> list[str]:
    """Return violations of the rule that tensors are contiguous and fill the file."""
    problems, at = [], 0
    last: str | None = None
    for name, entry in sorted(entries.items(), key=_place):
        if entry.begin != at:
            problem = "overlaps" if entry.begin < at else "leaves a hole after"
            before = "the header" if last is None else f"tensor {shown(last)}"
            problems.append(
                f"tensor {shown(name)} {problem} {before}: "
                f"expected its data at {at}, got {entry.begin}"
            )
        at, last = max(at, entry.end), name
    if at != data_size:
        problems.append(
            f"trailing bytes: the tensors take {at} bytes, the file holds {data_size}"
        )
    return problems


def _place(item: tuple[str, Entry]) -> tuple[int, int]:
    return item[1].begin, item[1].end


def encode_header(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """Return the first bytes of a file, padded so that the data is 64-byte aligned.

    Tensors are in the given order, metadata sorted by key. Raises ``RecordError`` for
    text that UTF-8 cannot encode, metadata that is not text, and a header above 16 MiB
    or a million values.
    """
    fields: dict[str, Any] = {}
    if metadata:
        _check_metadata(metadata)
        fields[METADATA] = dict(sorted(metadata.items()))
    for name, entry in entries.items():
        fields[name] = {
            "dtype": entry.tag,
            "shape": list(entry.shape),
            "data_offsets": [entry.begin, entry.end],
        }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise RecordError(
            f"header too large: {len(text)} bytes, expected at most {MAX_HEADER}"
        )
    check_values(text, "the header")
    return len(text).to_bytes(8, "little") + text


def check_name(name: object) -> str:
    """Return a valid tensor name; else raise ``RecordError``."""
    if not isinstance(name, str):
        raise RecordError(f"tensor name must be a string, got {shown(name)}")
    if name == METADATA:
        raise RecordError(f"tensor name {METADATA!r} is reserved by the format")
    _check_text(name, f"tensor name {shown(name)}: ")
    return name


def _check_metadata(metadata: Mapping[str, str]) -> None:
    for pair in metadata.items():
        for text in pair:
            if not isinstance(text, str):
                raise RecordError(f"metadata must map text to text, got {shown(pair)}")
            _check_text(text, f"metadata {shown(pair[0])}: ")


def _check_text(text: str, prefix: str = "") -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RecordError(f"{prefix}lone surrogate in {shown(text)}") from None
