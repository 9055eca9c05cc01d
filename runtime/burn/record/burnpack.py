"""Burn's packs (``.bpk``): a header, descriptions in CBOR, and aligned tensors.

The header is ``NRUB``, a version, and the size of the descriptions. Each tensor starts
at a multiple of 256 bytes, so that it can be used in a mapped file; packs from before
Burn 0.20 have no padding (burn-pack's ``base``).
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from burn.record import burn_formats, cbor
from burn.record.cursor import Blob, Cursor
from burn.record.dtypes import Bytes
from burn.record.errors import RecordError, joined, shown
from burn.record.files import MAX_HEADER
from burn.record.header import Entry, Header
from burn.record.precision import Precision
from burn.record.tensor_chunks import BytesLike, Piece

MAGIC = b"NRUB"
VERSION = 1
_START = 10
_ALIGNMENT = 256


def parse(data: Bytes) -> tuple[Header, Bytes]:
    """Return the header of a pack, and the bytes that contain its entries.

    Raises:
        RecordError: the pack is damaged, or of an unknown version.
    """
    cursor = Cursor(data.data, "Burn pack")
    if bytes(cursor.take(len(MAGIC))) != MAGIC:
        raise cursor.problem("expected NRUB", 0)
    version = cursor.number(2, big=False)
    if version != VERSION:
        raise RecordError(f"a Burn pack of version {version}, expected {VERSION}")
    size = cursor.number(4, big=False)
    if size > MAX_HEADER:
        raise cursor.problem(f"descriptions of {size} bytes")
    inner = Cursor(cursor.take(size), "Burn pack, descriptions")
    root = cbor.decode(inner)
    if inner.at != size:
        raise inner.problem(f"{size - inner.at} trailing bytes")
    entries, about = _described(root)
    start = _data_start(_START + size, data, entries)
    return Header(entries, about), data[start:]


def _described(root: Any) -> tuple[dict[str, Entry], dict[str, str]]:
    """Return the entries in the order of their data, and the pack's metadata."""
    if not isinstance(root, dict) or not isinstance(root.get("tensors"), dict):
        raise RecordError("expected a Burn pack: a map with tensors")
    problems: list[str] = []
    entries: dict[str, Entry] = {}
    for name, value in root["tensors"].items():
        try:
            entries[name] = _entry(value)
        except RecordError as problem:
            problems.append(f"tensor {shown(name)}: {problem}")
    ordered = dict(sorted(entries.items(), key=lambda item: item[1].begin))
    nonempty = [
        (name, entry) for name, entry in ordered.items() if entry.end > entry.begin
    ]
    for (before, one), (after, other) in pairwise(nonempty):
        if other.begin < one.end:
            problems.append(f"tensor {shown(after)} overlaps tensor {shown(before)}")
    if problems:
        raise RecordError(joined(problems))
    about = root.get("metadata")
    about = about if isinstance(about, dict) else {}
    return ordered, {key: text for key, text in about.items() if isinstance(text, str)}


def _entry(value: Any) -> Entry:
    if not isinstance(value, dict) or not {"dtype", "shape", "data_offsets"} <= {
        *value
    }:
        raise RecordError(f"expected dtype, shape and data_offsets, got {shown(value)}")
    offsets = value["data_offsets"]
    if not isinstance(offsets, list) or [type(at) for at in offsets] != [int, int]:
        raise RecordError(f"expected two data_offsets, got {shown(offsets)}")
    begin, end = offsets
    if not 0 <= begin <= end:
        raise RecordError(f"data_offsets {shown(offsets)} out of range")
    return burn_formats.entry(value["dtype"], value["shape"], Blob(begin, end))


def _data_start(after: int, data: Bytes, entries: Mapping[str, Entry]) -> int:
    """Return the offset of the data, chosen so that the data ends with the file.

    A file truncated by as many bytes as its padding ends like one without padding, so
    that layout is rejected if all offsets are aligned and the padding is present.
    """
    nonempty = [entry for entry in entries.values() if entry.end > entry.begin]
    length = max((entry.end for entry in nonempty), default=0)
    aligned, size = after + -after % _ALIGNMENT, len(data)
    if not length:
        return min(aligned, size)
    is_padded = not data[after:aligned].any()
    is_aligned = all(entry.begin % _ALIGNMENT == 0 for entry in nonempty)
    starts = (aligned,) if is_aligned and is_padded else (aligned, after)
    for start in starts:
        if start + length == size:
            return start
    raise RecordError(
        f"the tensors take {length} bytes after {aligned}, the file has {size} "
        "(is it truncated?)"
    )


def encode(
    pieces: Mapping[str, Piece],
    metadata: Mapping[str, str],
    precision: Precision | None,
) -> Iterator[BytesLike]:
    """Yield the bytes of a pack.

    Raises:
        RecordError: Burn does not have a dtype, or the descriptions are too large.
    """
    places: dict[str, tuple[int, int]] = {}
    end = 0
    for name, piece in pieces.items():
        begin = end + -end % _ALIGNMENT
        end = begin + piece.length
        places[name] = (begin, end)
    root: dict[str, cbor.Plain] = {
        "tensors": {
            name: {
                "dtype": burn_formats.dtype_of(pieces[name].tag, name),
                "shape": pieces[name].shape,
                "data_offsets": places[name],
                "param_id": burn_formats.id_of(name),
            }
            for name in sorted(pieces)
        }
    }
    settings = {"settings": burn_formats.settings(precision)} if precision else {}
    if metadata or settings:
        root["metadata"] = dict(sorted({**metadata, **settings}.items()))
    described = cbor.encode(root)
    if len(described) > MAX_HEADER:
        raise RecordError(f"descriptions too large: {len(described)} bytes")
    return _encoded(described, pieces, places)


def _encoded(
    described: bytes, pieces: Mapping[str, Piece], places: Mapping[str, tuple[int, int]]
) -> Iterator[BytesLike]:
    head = MAGIC + VERSION.to_bytes(2, "little") + len(described).to_bytes(4, "little")
    yield head + described
    yield bytes(-(len(head) + len(described)) % _ALIGNMENT)
    at = 0
    for name, piece in pieces.items():
        begin, end = places[name]
        if piece.length:
            yield bytes(begin - at)
            yield from piece.chunks()
            at = end
