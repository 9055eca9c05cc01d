"""The formats of records, by the names of files and by their contents.

===============  ==================================================  ========
``safetensors``  tensors by name; mapped, the one to choose          its own
``bpk``          Burn's pack; mapped, for exchange with Rust         Burn's
``mpk``          named MessagePack, Burn's default recorder          Burn's
``bin``          binary: bincode of parameters by key                our type
``json``         JSON, to look at                                    Burn's
===============  ==================================================  ========

The last three may be compressed (``mpk.gz``), by gzip and always to the same bytes.
"""

import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from burn.record import binary, burnpack, named_fields, safetensors
from burn.record.dtypes import Bytes
from burn.record.errors import RecordError, shown
from burn.record.files import HEAD_SIZE, describe_foreign
from burn.record.header import Header
from burn.record.precision import Precision
from burn.record.tensor_chunks import BytesLike, Piece

Encoder = Callable[
    [Mapping[str, Piece], Mapping[str, str], Precision | None], Iterator[BytesLike]
]
Parser = Callable[[Bytes], tuple[Header, Bytes]]


class Format(NamedTuple):
    """A record format, with its writer and reader."""

    encode: Encoder
    parse: Parser


_PLAIN = {
    "safetensors": Format(safetensors.encode, safetensors.parse),
    "bpk": Format(burnpack.encode, burnpack.parse),
    "mpk": Format(named_fields.encode_messagepack, named_fields.parse_messagepack),
    "bin": Format(binary.encode, binary.parse),
    "json": Format(named_fields.encode_json, named_fields.parse_json),
}
_GZIP = b"\x1f\x8b"
_GZ = ".gz"
#: The file name suffix of the index of a sharded model, which is also JSON.
_INDEX = ".index.json"
#: All formats, by the suffix of a file's name without its first dot.
FORMATS = (*_PLAIN, *(f"{name}{_GZ}" for name in ("mpk", "bin", "json")))
#: The maximum size of a decompressed record: this, or so many times the size of the
#: file.
MOST_INFLATED, MOST_TIMES = 64 * 2**20, 20
_STEP = 2**20


def format_named(path: str | os.PathLike[str]) -> str:
    """Return the format for the name of a file, by default safetensors."""
    name = os.fspath(path).lower()
    fitting = [kind for kind in FORMATS if name.endswith(f".{kind}")]
    return max(fitting, key=len, default="safetensors")


def encoded(
    format_name: str,
    pieces: Mapping[str, Piece],
    metadata: Mapping[str, str],
    precision: Precision | None,
) -> Iterator[BytesLike]:
    """Yield the bytes of a record in a format.

    Raises:
        RecordError: the format is unknown, or does not support the tensors.
    """
    if format_name not in FORMATS:
        expected = ", ".join(FORMATS)
        raise RecordError(
            f"unknown format {shown(format_name)}, expected one of {expected}"
        )
    plain = format_name.removesuffix(_GZ)
    chunks = _PLAIN[plain].encode(pieces, metadata, precision)
    return _deflated(chunks) if format_name.endswith(_GZ) else chunks


def parse(
    data: Bytes, name: str = "", most_inflated: int | None = None
) -> tuple[Header, Bytes]:
    """Return the header of a record, and the bytes that contain its entries.

    The format is detected from the contents, except binary records, which have no magic
    number and are detected by ``name``, that of the file. ``most_inflated`` is the
    maximum decompressed size, in place of the default.

    Raises:
        RecordError: the data is no record, is damaged, or decompresses to too much.
    """
    if data[:2].tobytes() == _GZIP:
        usual = max(MOST_INFLATED, MOST_TIMES * len(data))
        data = _inflated(data, usual if most_inflated is None else most_inflated)
    kind = _kind(data[:HEAD_SIZE].tobytes(), name)
    return _PLAIN[kind].parse(data)


def recognized(path: str | os.PathLike[str]) -> str | None:
    """Return the format of the record at ``path``, if it is one of Burn's.

    Safetensors files are not. Only the beginning of compressed files is read, and
    binary records are identified by their name.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        head = file.read(HEAD_SIZE)
    gz = _GZ if head.startswith(_GZIP) else ""
    if gz:
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, HEAD_SIZE)
        except zlib.error:
            return None
    name = os.fspath(path)
    kind = _of_burn(head, name)
    is_binary = format_named(name) == f"bin{gz}" and describe_foreign(head) is None
    return f"{kind}{gz}" if kind else f"bin{gz}" if is_binary else None


def _of_burn(head: bytes, name: str) -> str | None:
    """Return the Burn format of the contents, or JSON that is named like a record."""
    if head.startswith(burnpack.MAGIC):
        return "bpk"
    if head[1:10] == b"\xa8metadata" and head[0] in range(0x81, 0x90):
        return "mpk"
    is_json = head[8:9] != b"{" and head.lstrip()[:1] == b"{" and b'"metadata"' in head
    is_named = format_named(name).startswith("json") and not name.endswith(_INDEX)
    return "json" if is_json and (b'"item"' in head or is_named) else None


def _kind(head: bytes, name: str) -> str:
    kind = _of_burn(head, name)
    if kind is not None:
        return kind
    said = format_named(name).removesuffix(_GZ)
    foreign = describe_foreign(head)
    if foreign is None or foreign.kind == "safetensors file":
        return "safetensors" if foreign or said != "bin" else "bin"
    raise RecordError(f"expected a record, got: {foreign.kind}. {foreign.remedy}")


def _deflated(chunks: Iterator[BytesLike]) -> Iterator[BytesLike]:
    # zlib's own header has no time and no name.
    packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


def _inflated(data: Bytes, most: int) -> Bytes:
    """Return the contents of a gzip file of one member."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    parts = bytearray()
    try:
        for at in range(0, len(data), _STEP):
            rest: BytesLike = data[at : at + _STEP].data
            while rest and not unpacker.eof:
                parts += unpacker.decompress(rest, most + 1 - len(parts))
                if len(parts) > most:
                    raise RecordError(
                        f"gzip: grows beyond {most} bytes; most_inflated allows more"
                    )
                rest = unpacker.unconsumed_tail
    except zlib.error as error:
        raise RecordError(f"gzip: damaged: {error}") from None
    if not unpacker.eof or unpacker.unused_data:
        problem = "trailing bytes" if unpacker.eof else "cut off"
        raise RecordError(f"gzip: {problem}")
    return np.frombuffer(parts, np.uint8)
