"""The subset of MessagePack that records use (https://github.com/msgpack/msgpack)."""

import struct

from burn.record.cursor import Cursor, Value

NIL, FALSE, TRUE = 0xC0, 0xC2, 0xC3
#: The sizes of the lengths that follow these bytes.
_BLOBS = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_UNSIGNED = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_FLOATS = {0xCA: ">f", 0xCB: ">d"}
_PLAIN: dict[int, Value] = {NIL: None, FALSE: False, TRUE: True}


def decode(cursor: Cursor) -> Value:
    """Return the value at the cursor; byte strings are references.

    Raises:
        RecordError: the value is truncated, too deep or too large, has a repeated or
            non-text key, or uses extension types.
    """
    kind = cursor.take(1)[0]
    if kind < 0x80:
        return kind
    if kind >= 0xE0:
        return kind - 0x100
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind < 0xC0:
        return _short(cursor, kind)
    return _sized(cursor, kind)


def _short(cursor: Cursor, kind: int) -> Value:
    if kind < 0x90:
        return _map(cursor, kind & 0x0F)
    if kind < 0xA0:
        return _list(cursor, kind & 0x0F)
    return cursor.text(kind & 0x1F)


def _sized(cursor: Cursor, kind: int) -> Value:
    if kind in _BLOBS:
        return cursor.blob(cursor.number(_BLOBS[kind]))
    if kind in _TEXTS:
        return cursor.text(cursor.number(_TEXTS[kind]))
    if kind in _LISTS:
        return _list(cursor, cursor.number(_LISTS[kind]))
    if kind in _MAPS:
        return _map(cursor, cursor.number(_MAPS[kind]))
    if kind in _UNSIGNED:
        return cursor.number(_UNSIGNED[kind])
    if kind in _SIGNED:
        return cursor.number(_SIGNED[kind], signed=True)
    if kind in _FLOATS:
        code = _FLOATS[kind]
        return float(struct.unpack(code, cursor.take(struct.calcsize(code)))[0])
    raise cursor.problem(f"a value of kind {kind:#x}, which no record has")


def _list(cursor: Cursor, count: int) -> Value:
    result = [decode(cursor) for _ in range(cursor.enter(count))]
    cursor.leave()
    return result


def _map(cursor: Cursor, count: int) -> Value:
    result: dict[str, Value] = {}
    for _ in range(cursor.enter(count, 2)):
        key = decode(cursor)
        cursor.add(result, key, decode(cursor))
    cursor.leave()
    return result


def text(value: str) -> bytes:
    """Return the encoding of a text."""
    data = value.encode()
    if len(data) < 32:
        return bytes([0xA0 | len(data)]) + data
    return _head(len(data), _TEXTS) + data


def number(value: int) -> bytes:
    """Return the shortest encoding of a nonnegative integer."""
    return bytes([value]) if value < 0x80 else _head(value, _UNSIGNED)


def map_head(count: int) -> bytes:
    """Return the header of a map with ``count`` entries."""
    return bytes([0x80 | count]) if count < 16 else _head(count, _MAPS)


def list_head(count: int) -> bytes:
    """Return the header of an array with ``count`` values."""
    return bytes([0x90 | count]) if count < 16 else _head(count, _LISTS)


def fits_blob(size: int) -> bool:
    """Return whether a byte string may have this size."""
    return size < 2**32


def blob_head(size: int) -> bytes:
    """Return the header of a byte string with ``size`` bytes."""
    return _head(size, _BLOBS)


def _head(value: int, kinds: dict[int, int]) -> bytes:
    kind, size = next(
        (kind, size) for kind, size in kinds.items() if value < 1 << 8 * size
    )
    return bytes([kind]) + value.to_bytes(size, "big")
