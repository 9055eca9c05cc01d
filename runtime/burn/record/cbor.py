"""The subset of CBOR (RFC 8949) that Burn's packs use: definite lengths."""

from collections.abc import Mapping, Sequence

from burn.record.cursor import Cursor, Value

_PLAIN: dict[int, Value] = {20: False, 21: True, 22: None}
_SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
_UNSIGNED, _NEGATIVE, _BLOB, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)

Plain = bool | int | str | Sequence["Plain"] | Mapping[str, "Plain"]


def decode(cursor: Cursor) -> Value:
    """Return the value at the cursor; byte strings are references.

    Raises:
        RecordError: the value is truncated, too deep or too large, has a repeated or
            non-text key, or uses tags, floats or indefinite lengths.
    """
    first = cursor.take(1)[0]
    major, minor = first >> 5, first & 0x1F
    if major == _SIMPLE and minor in _PLAIN:
        return _PLAIN[minor]
    if major in (_TAG, _SIMPLE) or minor > 27:
        raise cursor.problem(f"a value of kind {first:#x}, which no record has")
    size = cursor.number(_SIZES[minor]) if minor in _SIZES else minor
    if major == _UNSIGNED:
        return size
    if major == _NEGATIVE:
        return -1 - size
    if major == _BLOB:
        return cursor.blob(size)
    return cursor.text(size) if major == _TEXT else _container(cursor, major, size)


def _container(cursor: Cursor, major: int, size: int) -> Value:
    if major == _LIST:
        items = [decode(cursor) for _ in range(cursor.enter(size))]
        cursor.leave()
        return items
    result: dict[str, Value] = {}
    for _ in range(cursor.enter(size, 2)):
        key = decode(cursor)
        cursor.add(result, key, decode(cursor))
    cursor.leave()
    return result


def encode(value: Plain) -> bytes:
    """Return the encoding of a value in its shortest form; maps keep their order."""
    if isinstance(value, bool):
        return bytes([0xF5 if value else 0xF4])
    if isinstance(value, int):
        return _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
    if isinstance(value, str):
        data = value.encode()
        return _head(_TEXT, len(data)) + data
    if isinstance(value, Mapping):
        pairs = (encode(key) + encode(item) for key, item in value.items())
        return _head(_MAP, len(value)) + b"".join(pairs)
    return _head(_LIST, len(value)) + b"".join(map(encode, value))


def _head(major: int, value: int) -> bytes:
    if value < 24:
        return bytes([major << 5 | value])
    minor, size = next(
        (minor, size) for minor, size in _SIZES.items() if value < 1 << 8 * size
    )
    return bytes([major << 5 | minor]) + value.to_bytes(size, "big")
