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
from dataclasses import dataclass

import numpy as np

from burn.record import binary, burnpack, named, safetensors
from burn.record.dtypes import Bytes
from burn.record.errors import RecordError, shown
from burn.record.files import HEAD_SIZE, describe_foreign
from burn.record.header import Header
from burn.record.pieces import BytesLike, Piece
from burn.record.precision import Precision

Encoder = Callable[
    [Mapping[str, Piece], Mapping[str, str], Precision | None], Iterator[BytesLike]
]
Parser = Callable[[Bytes], tuple[Header, Bytes]]


@dataclass(frozen=True)
class Format:
    """One way to write a record, and to read it."""

    encode: Encoder
    parse: Parser


_PLAIN = {
    "safetensors": Format(safetensors.encode, safetensors.parse),
    "bpk": Format(burnpack.encode, burnpack.parse),
    "mpk": Format(named.encode_messagepack, named.parse_messagepack),
    "bin": Format(binary.encode, binary.parse),
    "json": Format(named.encode_json, named.parse_json),
}
_GZIP = b"\x1f\x8b"
_GZ = ".gz"
#: What the index of a model in shards is called, which is JSON too.
_INDEX = ".index.json"
#: All of them: the name of a format is what comes after the dot in a file's name.
FORMATS = (*_PLAIN, *(f"{name}{_GZ}" for name in ("mpk", "bin", "json")))
#: Compressed records may grow to this, or to as many times what they were.
MOST_INFLATED, MOST_TIMES = 64 * 2**20, 20
_STEP = 2**20


def format_named(path: str | os.PathLike[str]) -> str:
    """The format that the name of a file says; safetensors where it says none."""
    name = os.fspath(path).lower()
    fitting = [kind for kind in FORMATS if name.endswith(f".{kind}")]
    return max(fitting, key=len, default="safetensors")


def encoded(
    format_name: str,
    pieces: Mapping[str, Piece],
    metadata: Mapping[str, str],
    precision: Precision | None,
) -> Iterator[BytesLike]:
    """The bytes of a record in a format.

    Raises:
        RecordError: there is no such format; it has no place for some of this.
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
    """What a record holds, and the bytes that its entries are in.

    The format is told by the contents alone, but for binary records, which begin in no
    way of their own: ``name``, of a file, tells them. ``most_inflated`` is to how many
    bytes a compressed one may grow, in place of the usual limit.

    Raises:
        RecordError: it is none, is damaged, or grows beyond reason.
    """
    if data[:2].tobytes() == _GZIP:
        usual = max(MOST_INFLATED, MOST_TIMES * len(data))
        data = _inflated(data, usual if most_inflated is None else most_inflated)
    kind = _kind(data[:HEAD_SIZE].tobytes(), name)
    return _PLAIN[kind].parse(data)


def recognised(path: str | os.PathLike[str]) -> str | None:
    """The format of the record at ``path``, if it is one of Burn's.

    Safetensors files are not. Of a compressed one only the beginning is looked at, and
    a binary one is taken for what its name says.

    Raises:
        OSError: it cannot be read.
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
    """The format that contents begin like, or JSON that is called a record."""
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
    """The contents of a gzip file of one member."""
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
