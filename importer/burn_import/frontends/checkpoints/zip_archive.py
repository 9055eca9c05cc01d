"""Reader of zip archives in mapped memory.

A zip has two descriptions of each entry: the central directory at the end, and the
local header before the data. If they differ, two readers may see two archives. Here
both must agree, and all names, sizes and offsets are validated before any data is read.
The format is PKWARE's APPNOTE 6.3
(https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from burn.record.errors import shown
from burn_import.frontends.checkpoints.limits import Limits
from burn_ir import UnreadableFile, UnsupportedModel

_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_LONGEST_COMMENT = 0xFFFF
_UNKNOWN = 0xFFFFFFFF
_ENCRYPTED, _SIZES_FOLLOW = 0x0041, 0x0008
_STORED, _DEFLATED = 0, 8


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive: its row in the central directory, and its data offset."""

    name: str
    method: int
    crc: int
    packed: int
    size: int
    at: int
    begin: int


class Zip:
    """The entries of an archive by name; their data must not overlap.

    Raises:
        UnreadableFile: the bytes are no archive, or contradict each other.
        UnsupportedModel: it is encrypted, or split into several parts.
    """

    def __init__(self, data: memoryview, limits: Limits) -> None:
        self.data = data
        self.limits = limits
        self.entries: dict[str, Entry] = {}
        begin, end, count = _directory(data)
        for entry in _entries(data, begin, end):
            if entry.name in self.entries:
                raise UnreadableFile(f"the archive has {shown(entry.name)} twice")
            self.entries[entry.name] = entry
        if len(self.entries) != count:
            raise UnreadableFile(
                f"the archive announces {count} entries and lists {len(self.entries)}"
            )
        _check_places(self.entries.values(), begin)

    def folder(self) -> str:
        """Return the one folder that contains all entries.

        Raises:
            UnreadableFile: there are several folders, or entries outside of it.
        """
        folders = {name.partition("/")[0] for name in self.entries if "/" in name}
        if len(folders) != 1 or any("/" not in name for name in self.entries):
            raise UnreadableFile("expected an archive of one folder")
        return folders.pop()

    def stored(self, name: str) -> memoryview:
        """Return the bytes of an entry, which must be uncompressed.

        Raises:
            UnsupportedModel: the entry is compressed.
        """
        entry = self.entries[name]
        if entry.method != _STORED:
            raise UnsupportedModel(
                f"{shown(name)} is compressed, which torch.save never does; unpack the "
                "archive and zip it again with zip -0"
            )
        return self.data[entry.begin : entry.begin + entry.size]

    def read(self, name: str) -> memoryview:
        """Return the bytes of a metadata entry, compressed or not.

        Raises:
            UnreadableFile: they are damaged.
            UnsupportedModel: they exceed the limit for metadata.
        """
        entry = self.entries[name]
        most = self.limits.pickle if entry.method == _STORED else self.limits.metadata
        if entry.size > most:
            raise UnsupportedModel(
                f"{shown(name)} takes {entry.size} bytes, expected {most} at most"
            )
        packed = self.data[entry.begin : entry.begin + entry.packed]
        content = packed if entry.method == _STORED else _inflate(entry, packed)
        # PyTorch writes a checksum of 0 if checksums are disabled.
        if entry.crc and zlib.crc32(content) != entry.crc:
            raise UnreadableFile(f"{shown(name)}: its checksum is wrong")
        return content


def _inflate(entry: Entry, packed: memoryview) -> memoryview:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = stream.decompress(packed, entry.size + 1)
    except zlib.error:
        content = b""
    if len(content) != entry.size or not stream.eof:
        raise UnreadableFile(
            f"{shown(entry.name)}: expected {entry.size} bytes when inflated"
        )
    return memoryview(content)


def _directory(data: memoryview) -> tuple[int, int, int]:
    """Return the begin and end of the central directory, and its entry count."""
    start = max(len(data) - _END.size - _LONGEST_COMMENT, 0)
    tail = bytes(data[start:])
    position = len(tail)
    while (position := tail.rfind(b"PK\5\6", 0, position)) >= 0:
        if position + _END.size <= len(tail):
            fields = _END.unpack_from(tail, position)
            if position + _END.size + fields[-1] == len(tail):
                break
        position += 3  # the next search ends before this signature
    else:
        raise UnreadableFile("a zip archive without end record: damaged or cut off")
    at = start + position
    disk, listed_on, here, count, size, begin = fields[1:7]
    end = at
    if at >= _LOCATOR64.size and bytes(data[at - _LOCATOR64.size :][:4]) == b"PK\6\7":
        end, disk, listed_on, here, count, size, begin = _wide_directory(data, at)
    if disk or listed_on or here != count:
        raise UnsupportedModel("a zip archive in several parts")
    if begin + size != end:
        raise UnreadableFile(
            "a zip archive with bytes between its central directory and its end record"
        )
    return begin, end, count


def _wide_directory(data: memoryview, at: int) -> tuple[int, ...]:
    """Return the same for an archive in zip64 format."""
    _, _, position, _ = _LOCATOR64.unpack_from(data, at - _LOCATOR64.size)
    if position + _END64.size > at:
        raise UnreadableFile("a zip archive with a damaged end record")
    magic, _, _, _, disk, listed_on, here, count, size, begin = _END64.unpack_from(
        data, position
    )
    if magic != b"PK\6\6":
        raise UnreadableFile("a zip archive with a damaged end record")
    return position, disk, listed_on, here, count, size, begin


def _entries(data: memoryview, at: int, end: int) -> Iterator[Entry]:
    """Yield the entries of the central directory, checked against local headers."""
    while at < end:
        if at + _CENTRAL.size > end:
            raise UnreadableFile("a zip archive whose central directory is cut off")
        magic, _, _, flags, method, _, _, crc, packed, size, *rest = (
            _CENTRAL.unpack_from(data, at)
        )
        name_size, extra_size, comment_size, disk, _, _, position = rest
        begin = at + _CENTRAL.size
        stop = begin + name_size + extra_size + comment_size
        if magic != b"PK\1\2" or stop > end:
            raise UnreadableFile("a zip archive with a damaged central directory")
        raw = bytes(data[begin : begin + name_size])
        name = _checked_name(raw)
        if flags & _ENCRYPTED or disk:
            raise UnsupportedModel(f"{shown(name)} is encrypted, or on another disk")
        if method not in (_STORED, _DEFLATED):
            raise UnsupportedModel(f"{shown(name)}: compression method {method}")
        extra = bytes(data[begin + name_size : begin + name_size + extra_size])
        if _UNKNOWN in (packed, size, position):
            size, packed, position = _wide(extra, [size, packed, position])
        first = _first_byte(data, position, raw, (flags, method, crc, packed, size))
        yield Entry(name, method, crc, packed, size, position, first)
        at = stop


def _first_byte(
    data: memoryview, position: int, raw: bytes, said: tuple[int, int, int, int, int]
) -> int:
    """Return the offset of an entry's data; ``said`` is its directory row."""
    where = shown(raw.decode("utf-8", "replace"))
    if position + _LOCAL.size > len(data):
        raise UnreadableFile(f"{where} lies beyond the end of the archive")
    magic, _, flags, method, _, _, crc, packed, size, name_size, extra_size = (
        _LOCAL.unpack_from(data, position)
    )
    begin: int = position + _LOCAL.size
    local = bytes(data[begin : begin + name_size])
    begin += name_size + extra_size
    if _UNKNOWN in (packed, size):
        extra = bytes(data[begin - extra_size : begin])
        size, packed, _ = _wide(extra, [size, packed, 0])
    _, _, *sizes = said
    follow = flags & _SIZES_FOLLOW
    same = all(
        here == there or (follow and not here)
        for here, there in zip((crc, packed, size), sizes, strict=True)
    )
    if magic != b"PK\3\4" or local != raw or (flags, method) != said[:2] or not same:
        raise UnreadableFile(
            f"{where}: its central directory and its local header disagree"
        )
    if method == _STORED and sizes[1] != sizes[2]:
        raise UnreadableFile(f"{where}: a stored entry with two different sizes")
    return begin


def _wide(extra: bytes, fields: list[int]) -> list[int]:
    """Return the fields, with 64-bit values from the zip64 extra field."""
    at = 0
    while at + 4 <= len(extra):
        tag, size = struct.unpack_from("<2H", extra, at)
        part = extra[at + 4 : at + 4 + size]
        if tag == 1 and len(part) == size and size % 8 == 0:
            wide = (number for (number,) in struct.iter_unpack("<Q", part))
            numbers = [
                next(wide, -1) if field == _UNKNOWN else field for field in fields
            ]
            if -1 not in numbers:
                return numbers
        at += 4 + size
    raise UnreadableFile("a zip archive without the zip64 sizes of an entry")


def _checked_name(raw: bytes) -> str:
    name = raw.decode("utf-8", "surrogateescape")
    parts = name.split("/")
    if not name or "\0" in name or "\\" in name or ".." in parts or not parts[0]:
        raise UnreadableFile(
            f"the archive has an entry {shown(name)}, which is no name"
        )
    return name


def _check_places(entries: Iterable[Entry], end: int) -> None:
    at = 0
    for entry in sorted(entries, key=lambda entry: entry.at):
        if entry.at < at or (at == 0 and entry.at != 0):
            raise UnreadableFile(f"{shown(entry.name)} overlaps another entry")
        at = entry.begin + entry.packed
    if at > end:
        raise UnreadableFile("the last entry overlaps the central directory")
