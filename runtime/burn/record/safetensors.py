"""Parsing and serialization of safetensors files."""

from collections.abc import Iterator, Mapping

from burn.record.burn_formats import settings
from burn.record.dtypes import Bytes, bits
from burn.record.errors import RecordError
from burn.record.files import MAX_HEADER
from burn.record.header import Entry, Header, encode_header, parse_header
from burn.record.precision import Precision
from burn.record.tensor_chunks import BytesLike, Piece


def parse(data: Bytes) -> tuple[Header, Bytes]:
    """Return the header of a safetensors file, and the bytes that contain its entries.

    Raises:
        RecordError: the file is damaged.
    """
    size = len(data)
    if size < 8:
        raise RecordError(f"truncated: expected at least 8 bytes, got {size}")
    length = int.from_bytes(data[:8].tobytes(), "little")
    if length > MAX_HEADER:
        raise RecordError(
            f"header too large: {length} bytes, expected at most {MAX_HEADER} "
            "(is this a safetensors file?)"
        )
    if length > size - 8:
        raise RecordError(
            f"truncated: expected a header of {length} bytes, "
            f"got {size - 8} bytes after its length"
        )
    start = 8 + length
    return parse_header(data[8:start].tobytes(), size - start), data[start:]


def encode(
    pieces: Mapping[str, Piece],
    metadata: Mapping[str, str],
    precision: Precision | None,
) -> Iterator[BytesLike]:
    """Yield the bytes of a safetensors file.

    Raises:
        RecordError: text that UTF-8 cannot encode, or a header above 16 MiB.
    """
    entries = _layout(pieces)
    more = {"settings": settings(precision)} if precision else {}
    header = encode_header(entries, {**metadata, **more})
    return _stream(header, pieces, entries)


def _layout(pieces: Mapping[str, Piece]) -> dict[str, Entry]:
    """Return the entries in the given order, each with its offset in the data."""
    places: dict[str, Entry] = {}
    at = 0
    for name, piece in sorted(pieces.items(), key=_falling_size):
        places[name] = Entry(piece.tag, piece.shape, at, at + piece.length)
        at += piece.length
    return {name: places[name] for name in pieces}


def _falling_size(item: tuple[str, Piece]) -> int:
    return -bits(item[1].tag)


def _stream(
    header: bytes, pieces: Mapping[str, Piece], entries: Mapping[str, Entry]
) -> Iterator[BytesLike]:
    yield header
    for name in sorted(entries, key=lambda name: _place(entries[name])):
        yield from pieces[name].chunks()


def _place(entry: Entry) -> tuple[int, int]:
    return entry.begin, entry.end
