"""Protobuf on the wire: a model without the bytes of its tensors.

The weights of a model are most of its file and protobuf would copy them. Here the
messages that lead to a tensor are walked in the mapped file, and every ``raw_data`` is
replaced by the ``segment`` (begin, end) where it stands in the file: a field of
``TensorProto`` that has a number in the format and no use, so a file that comes with
one is refused. Encoding: https://protobuf.dev/programming-guides/encoding/.
"""

from collections.abc import Iterator, Mapping

from burn_ir import UnreadableFile

#: Graphs in attributes of nodes of graphs: how deep they may be.
MAX_DEPTH = 32

#: What a field of a message holds: the name of a message, or one of these.
RAW, DROP, REFUSE = "raw", "drop", "refuse"

#: The fields that lead to tensors, by message. Types of inner values and training
#: graphs are not read, so they go.
MESSAGES: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 20: DROP, 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse", 13: DROP, 14: DROP},
    "function": {7: "node", 11: "attribute", 12: DROP},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        10: "tensor",
        6: "graph",
        11: "graph",
        22: "sparse",
        23: "sparse",
    },
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {3: REFUSE, 9: RAW},
}

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SEGMENT_TAG = b"\x1a"  # field 3, bytes
_MAX_VARINT = 10


def without_raw_data(file: memoryview) -> bytes:
    """The bytes of a ``ModelProto`` with a ``segment`` for every ``raw_data``.

    Raises:
        UnreadableFile: these bytes are no protobuf messages, or are nested too deeply.
    """
    return _Walk(file).message("model", 0, len(file), 0)


class _Walk:
    def __init__(self, file: memoryview) -> None:
        self.file = file

    def message(self, kind: str, start: int, end: int, depth: int) -> bytes:
        if kind == "graph":
            depth += 1
            if depth > MAX_DEPTH:
                raise UnreadableFile(
                    f"expected graphs nested at most {MAX_DEPTH} deep, found more"
                )
        out = bytearray()
        kept = start  # everything before is in `out`
        for number, begin, body, stop in self.fields(start, end):
            child = MESSAGES[kind].get(number)
            if child is None:
                continue
            out += self.file[kept:begin]
            kept = stop
            if child == RAW:
                out += _SEGMENT_TAG + _length_first(_segment(body, stop))
            elif child == REFUSE:
                raise UnreadableFile("a tensor is split into segments, which is unused")
            elif child != DROP:
                inner = self.message(child, body, stop, depth)
                out += _varint(number << 3 | _BYTES) + _length_first(inner)
        out += self.file[kept:end]
        return bytes(out)

    def fields(self, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Number, begin, begin of the content and end of each field of bytes."""
        while at < end:
            begin = at
            tag, at = self.varint(at, end)
            wire = tag & 7
            if tag >> 3 == 0:
                raise _damaged(begin, "expected a field number, got 0")
            if wire == _BYTES:
                length, at = self.varint(at, end)
                if length > end - at:
                    raise _damaged(
                        begin, f"a field claims {length} bytes, {end - at} are left"
                    )
                yield tag >> 3, begin, at, at + length
                at += length
            else:
                at = self.skip(wire, at, end)

    def skip(self, wire: int, at: int, end: int) -> int:
        if wire == _VARINT:
            return self.varint(at, end)[1]
        if wire not in (_FIXED32, _FIXED64):
            raise _damaged(at, f"expected a wire type of protobuf, got {wire}")
        stop = at + (8 if wire == _FIXED64 else 4)
        if stop > end:
            raise _damaged(at, "the data ends within a number")
        return stop

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """A number and the place behind it."""
        value = shift = 0
        for position in range(at, min(end, at + _MAX_VARINT)):
            byte = self.file[position]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position + 1
            shift += 7
        raise _damaged(at, "the data ends within a number")


def _damaged(at: int, message: str) -> UnreadableFile:
    return UnreadableFile(f"damaged or cut off at byte {at}: {message}")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _length_first(body: bytes) -> bytes:
    return _varint(len(body)) + body


def _segment(begin: int, end: int) -> bytes:
    return b"\x08" + _varint(begin) + b"\x10" + _varint(end)
