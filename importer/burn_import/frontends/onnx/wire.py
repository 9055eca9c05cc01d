"""Protobuf wire format: a model message without the bytes of its tensors.

Most of a model's file is weights, which protobuf would copy. This module walks the
messages that lead to tensors in the mapped file and replaces every ``raw_data`` by a
``segment`` (begin, end), its byte range in the file. ``segment`` is a field of
``TensorProto`` that the format defines and no exporter writes; files that contain one
are refused. Encoding: https://protobuf.dev/programming-guides/encoding/.
"""

from collections.abc import Iterator, Mapping

from burn_import.foreign import AGAIN
from burn_ir import InvalidModel, UnreadableFile

#: Largest nesting depth of graphs in attributes.
MAX_DEPTH = 32

#: The content of a message field: the name of a message type, or one of these. Text is
#: checked here because protobuf returns text that is not UTF-8 as bytes.
RAW, DROP, REFUSE, TEXT = "raw", "drop", "refuse", "text"


def _fields(**kinds: tuple[int, ...]) -> dict[int, str]:
    """Return the kind of each field, from the fields of each kind."""
    return {number: kind for kind, numbers in kinds.items() for number in numbers}


#: The fields that lead to tensors or are text, by message. Fields that are not read
#: (types of inner values, training graphs, most documentation) are dropped.
MESSAGES: Mapping[str, Mapping[int, str]] = {
    "model": _fields(text=(2, 3), graph=(7,), opset=(8,), drop=(6, 20), function=(25,)),
    "opset": _fields(text=(1,)),
    "graph": _fields(
        node=(1,),
        text=(2, 10),
        tensor=(5,),
        value=(11, 12),
        sparse=(15,),
        drop=(13, 14),
    ),
    "function": _fields(
        text=(1, 4, 5, 6, 10, 13), node=(7,), opset=(9,), attribute=(11,), drop=(8, 12)
    ),
    "node": _fields(text=(1, 2, 3, 4, 7, 8), attribute=(5,), drop=(6,)),
    "attribute": _fields(
        text=(1, 21), tensor=(5, 10), graph=(6, 11), sparse=(22, 23), drop=(13,)
    ),
    "sparse": _fields(tensor=(1, 2)),
    "tensor": _fields(refuse=(3,), text=(8,), raw=(9,), entry=(13,), drop=(12,)),
    "entry": _fields(text=(1, 2)),
    "value": _fields(text=(1,), type=(2,), drop=(3,)),
    "type": _fields(tensor_type=(1,)),
    "tensor_type": _fields(shape=(2,)),
    "shape": _fields(dim=(1,)),
    "dim": _fields(text=(2,), drop=(3,)),
}

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SEGMENT_TAG = b"\x1a"  # field 3, bytes
_MAX_VARINT = 10


def without_raw_data(file: memoryview) -> bytes:
    """Return the bytes of a ``ModelProto`` with a ``segment`` for every ``raw_data``.

    Raises:
        InvalidModel: a name is not UTF-8.
        UnreadableFile: the bytes are not protobuf messages, or are nested too deeply.
    """
    changed = _Walk(file).message("model", 0, len(file), 0)
    return bytes(file) if changed is None else changed


class _Walk:
    def __init__(self, file: memoryview) -> None:
        self.file = file

    def message(self, kind: str, start: int, end: int, depth: int) -> bytes | None:
        """Return a message without raw data; None if it is unchanged."""
        if kind == "graph":
            depth += 1
            if depth > MAX_DEPTH:
                raise UnreadableFile(
                    f"expected graphs nested at most {MAX_DEPTH} deep, found more"
                )
        children = MESSAGES[kind]
        parts: list[bytes | memoryview] = []
        copied = start  # end of the bytes already copied to `parts`
        for number, begin, body, stop in self.fields(start, end):
            child = children.get(number)
            if child == TEXT:
                self.check_text(body, stop)
            elif child is not None:
                new = self.field(number, child, body, stop, depth)
                if new is not None:
                    parts += [self.file[copied:begin], new]
                    copied = stop
        return b"".join([*parts, self.file[copied:end]]) if parts else None

    def field(
        self, number: int, kind: str, start: int, end: int, depth: int
    ) -> bytes | None:
        """Return the replacement of a field and its number; None if it is unchanged."""
        if kind == RAW:
            return _SEGMENT_TAG + _length_first(_segment(start, end))
        if kind == REFUSE:
            raise UnreadableFile(
                "a tensor is split into segments, which is not supported"
            )
        if kind == DROP:
            return b""
        inner = self.message(kind, start, end, depth)
        if inner is None:
            return None
        return _varint(number << 3 | _BYTES) + _length_first(inner)

    def fields(self, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield number, begin, begin of content, end of each length-delimited field."""
        file, varint = self.file, self.varint
        while at < end:
            begin = at
            # fast path for one-byte varints: a call takes longer
            tag, at = (file[at], at + 1) if file[at] < 0x80 else varint(at, end)
            wire = tag & 7
            if tag >> 3 == 0:
                raise _damaged(begin, "expected a field number, got 0")
            if wire == _BYTES:
                length, at = (
                    (file[at], at + 1)
                    if at < end and file[at] < 0x80
                    else varint(at, end)
                )
                if length > end - at:
                    raise _damaged(
                        begin, f"a field claims {length} bytes, {end - at} are left"
                    )
                yield tag >> 3, begin, at, at + length
                at += length
            else:
                at = self.skip(wire, at, end)

    def check_text(self, start: int, end: int) -> None:
        text = self.file[start:end]
        try:
            str(text, "utf-8")
        except UnicodeDecodeError:
            message = f"expected names in UTF-8, got {bytes(text[:40])!r}"
            raise InvalidModel(message) from None

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
        """Decode a varint; return the number and the position after it."""
        if at < end and self.file[at] < 0x80:  # fast path
            return self.file[at], at + 1
        value = shift = 0
        for position in range(at, min(end, at + _MAX_VARINT)):
            byte = self.file[position]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position + 1
            shift += 7
        raise _damaged(at, "the data ends within a number")


def _damaged(at: int, message: str) -> UnreadableFile:
    text = f"expected an ONNX model, got one damaged or cut off at byte {at}: {message}"
    return UnreadableFile(text, AGAIN)


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
