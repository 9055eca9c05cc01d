"""Records as mappings of names to lazily created NumPy views."""

import os
import stat
from collections.abc import Iterator, Mapping
from functools import partial
from io import BufferedReader
from pathlib import Path

import numpy as np

from burn.record import formats, safetensors
from burn.record.dtypes import DTYPES, Array, Bytes, DType, unpack_f4
from burn.record.errors import RecordError, shown
from burn.record.files import HEAD_SIZE, SAFETENSORS, describe_foreign
from burn.record.header import ALIGNMENT, Header
from burn.record.zipped_records import archived_bytes


class Record(Mapping[str, Array]):
    """A read-only mapping of tensor names to arrays, in the header's order.

    An array is created on access, as a read-only view of the file's bytes. Two kinds
    are copied instead: ``F4``, which is packed in the file, and tensors at an address
    that is not aligned for their type.
    """

    def __init__(self, path: Path, header: Header, data: Bytes) -> None:
        self.path = path
        self.metadata: dict[str, str] = dict(header.metadata)
        self._entries = header.entries
        self._data = data

    def __getitem__(self, name: str) -> Array:
        """Return a tensor as a read-only array, in its own dtype and shape.

        Raises ``KeyError`` for an unknown name, and ``RecordError`` for a ``BOOL``
        tensor with bytes other than 0 and 1.
        """
        entry = self._entries[name]
        raw = self._data[entry.begin : entry.end]
        if entry.tag == "BOOL" and raw.max(initial=0) > 1:
            raise RecordError(
                f"{self.path}: tensor {shown(name)}: BOOL expects bytes 0 and 1, "
                f"got {raw.max()}"
            )
        if entry.tag == "F4":
            raw = unpack_f4(raw)
        array = raw.view(DTYPES[entry.tag]).reshape(entry.shape)
        if not array.flags.aligned:
            array = array.copy()
        array.flags.writeable = False
        return array

    def info(self, name: str) -> tuple[DType, tuple[int, ...]]:
        """Return the dtype and shape of a tensor, without reading its bytes."""
        entry = self._entries[name]
        return DTYPES[entry.tag], entry.shape

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    # Mapping would compare arrays with ==, whose answer is not a bool.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Record({str(self.path)!r}, {len(self)} tensors)"


def open_record(path: str | os.PathLike[str], mmap: bool = True) -> Record:
    """Return the record in a safetensors file, with its header fully checked.

    With ``mmap`` the file is mapped and read on access; if another process then
    truncates the file, this process is killed, so open files that may change in place
    with ``mmap=False``, which reads them into memory.

    Raises ``RecordError`` for an invalid record, and ``OSError`` if the file cannot be
    opened.
    """
    path = Path(path)
    data = _contents(path, mmap)
    foreign = describe_foreign(data[:HEAD_SIZE].tobytes())
    if foreign is not None and foreign is not SAFETENSORS:
        raise RecordError(
            f"{path}: expected a safetensors file, got: {foreign.kind}. "
            f"{foreign.remedy}"
        )
    return _record(path, safetensors.parse, data)


def read_record(
    path: str | os.PathLike[str], mmap: bool = True, *, most_inflated: int | None = None
) -> Record:
    """Return the record in a file of any of the ``FORMATS``, detected by its contents.

    Safetensors files, packs, and uncompressed MessagePack and binary records are
    mapped, like ``open_record`` does. Compressed files and JSON are read into memory. A
    compressed file may decompress to ``most_inflated`` bytes, by default 20 times its
    size and at least 64 MiB.

    Raises ``RecordError`` and ``OSError`` like ``open_record``.
    """
    path = Path(path)
    parse = partial(formats.parse, name=path.name, most_inflated=most_inflated)
    return _record(path, parse, _contents(path, mmap))


def record_of_bytes(data: bytes, format_name: str = "") -> Record:
    """Return the record in bytes of any of the ``FORMATS``; ``bin`` must be named.

    Raises ``RecordError`` for an invalid record.
    """
    array = np.frombuffer(data, np.uint8)
    named = partial(formats.parse, name=f".{format_name}")
    return _record(Path("bytes"), named, array)


def _record(path: Path, parse: formats.Parser, data: Bytes) -> Record:
    try:
        header, contents = parse(data)
    except RecordError as problem:
        raise RecordError(f"{path}: {problem}") from None
    return Record(path, header, contents)


def _contents(path: Path, mmap: bool) -> Bytes:
    archived = archived_bytes(path)
    if archived is not None:
        data = _aligned(len(archived))
        data[:] = np.frombuffer(archived, np.uint8)
        return data
    if not stat.S_ISREG(path.stat().st_mode):
        kind = "a directory" if path.is_dir() else "a device or pipe"
        raise RecordError(f"{path}: expected a regular file, got {kind}")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return np.empty(0, np.uint8)
        return _map(file, size) if mmap else _read(path, file, size)


def _map(file: BufferedReader, size: int) -> Bytes:
    mapped = np.memmap(file, dtype=np.uint8, mode="r", shape=(size,))
    return np.asarray(mapped)  # plain views: slicing a memmap costs ten times more


def _read(path: Path, file: BufferedReader, size: int) -> Bytes:
    """Return the whole file in memory, with the alignment of a mapped file."""
    data = _aligned(size)
    file.seek(0)
    got = file.readinto(data.data)
    if got != size:
        raise RecordError(f"{path}: truncated: expected {size} bytes, got {got}")
    data.flags.writeable = False
    return data


def _aligned(size: int) -> Bytes:
    """Return a buffer with the alignment of a mapped file."""
    room = np.empty(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size]
