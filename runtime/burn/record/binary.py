"""Binary records: bincode without field names, as in Burn's binary recorders.

Reading such a file requires the type that was written. Here it is the same for every
model: Burn's metadata, the parameters by key, and further metadata.
"""

from collections.abc import Iterator, Mapping

from burn.record import burn_formats
from burn.record.cursor import Blob, Cursor
from burn.record.dtypes import Bytes
from burn.record.errors import RecordError
from burn.record.header import Entry, Header
from burn.record.precision import Precision
from burn.record.tensor_chunks import BytesLike, Piece

#: The marker that distinguishes these records from those of a Rust program.
KIND = "Bin of parameters by key"
_LONGER = {251: 2, 252: 4, 253: 8}
_BOOL = burn_formats.DTYPES.index("Bool")


def parse(data: Bytes) -> tuple[Header, Bytes]:
    """Return the header of a binary record, and the bytes that contain its entries.

    Raises:
        RecordError: the record is damaged, or of another type.
    """
    cursor = Cursor(data.data, "binary record")
    try:
        about = {field: _text(cursor) for field in burn_formats.FIELDS}
    except RecordError:
        about = {}
    if about.get("format") != KIND:
        raise RecordError(
            "expected a binary record of parameters by key; those that Burn writes "
            "have no names and fit one program only: save it as .mpk or .bpk there"
        )
    entries: dict[str, Entry] = {}
    for _ in range(cursor.enter(_number(cursor), 6)):
        name = _text(cursor)
        if name in entries:
            raise cursor.problem(f"duplicate key {name!a}")
        entries[name] = _tensor(cursor)
    for _ in range(cursor.enter(_number(cursor), 2)):
        key = _text(cursor)
        about.setdefault(key, _text(cursor))
    if cursor.at != len(data):
        raise cursor.problem(f"{len(data) - cursor.at} trailing bytes")
    return Header(entries, about), data


def _tensor(cursor: Cursor) -> Entry:
    _text(cursor)  # the id
    blob: Blob = cursor.blob(_number(cursor))
    shape = [_number(cursor) for _ in range(cursor.enter(_number(cursor)))]
    cursor.leave()
    variant = _number(cursor)
    if variant >= len(burn_formats.DTYPES):
        raise cursor.problem(f"unknown dtype {variant}")
    if variant == _BOOL and _number(cursor) > 1:
        raise cursor.problem("a bool that is not stored in a byte")
    try:
        return burn_formats.entry(burn_formats.DTYPES[variant], shape, blob)
    except RecordError as problem:
        raise cursor.problem(str(problem)) from None


def _number(cursor: Cursor) -> int:
    first = cursor.take(1)[0]
    if first < 251:
        return first
    if first not in _LONGER:
        raise cursor.problem(f"expected a number, got {first:#x}")
    return cursor.number(_LONGER[first], big=False)


def _text(cursor: Cursor) -> str:
    return cursor.text(_number(cursor))


def encode(
    pieces: Mapping[str, Piece],
    metadata: Mapping[str, str],
    precision: Precision | None,
) -> Iterator[BytesLike]:
    """Yield the bytes of a binary record.

    Raises:
        RecordError: Burn does not have a dtype.
    """
    for name, piece in pieces.items():
        burn_formats.dtype_of(piece.tag, name)
    return _encoded(pieces, burn_formats.metadata_of(KIND, metadata, precision))


def _encoded(
    pieces: Mapping[str, Piece], about: Mapping[str, str]
) -> Iterator[BytesLike]:
    yield b"".join(_packed_text(about[field]) for field in burn_formats.FIELDS)
    yield _packed(len(pieces))
    for name, piece in pieces.items():
        yield _packed_text(name) + _packed_text(burn_formats.id_text(name))
        yield _packed(piece.length)
        yield from piece.chunks()
        yield _packed(len(piece.shape)) + b"".join(map(_packed, piece.shape))
        dtype = burn_formats.dtype_of(piece.tag, name)
        yield (
            _packed(burn_formats.DTYPES.index(dtype))
            if isinstance(dtype, str)
            else _packed(_BOOL) + _packed(0)
        )
    more = {key: text for key, text in about.items() if key not in burn_formats.FIELDS}
    yield _packed(len(more))
    for key, text in more.items():
        yield _packed_text(key) + _packed_text(text)


def _packed(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    kind, size = next((k, n) for k, n in _LONGER.items() if value < 1 << 8 * n)
    return bytes([kind]) + value.to_bytes(size, "little")


def _packed_text(text: str) -> bytes:
    data = text.encode()
    return _packed(len(data)) + data
