"""Checkpoints of PyTorch to measure with: large and sparse, or of many tensors."""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

FLOAT = 4
#: 128 MB in each tensor of a large checkpoint.
LARGE = (4096, 8192)
_LOCAL, _CENTRAL, _END = 0x04034B50, 0x02014B50, 0x06054B50
_WIDE_END, _WIDE_PLACE = 0x06064B50, 0x07064B50
_MOST = 0xFFFFFFFF


def _pickled(tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> bytes:
    """A pickle of float32 tensors: (name, key of the storage, shape)."""
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n"
    ordered = b"ccollections\nOrderedDict\n)R"
    code = b"\x80\x02}("
    for name, key, shape in tensors:
        count, strides = _laid_out(shape)
        storage = b"(" + _text("storage") + b"ctorch\nFloatStorage\n" + _text(key)
        storage += _text("cpu") + _number(count) + b"tQ"
        sizes = b"(" + b"".join(map(_number, shape)) + b"t"
        steps = b"(" + b"".join(map(_number, strides)) + b"t"
        arguments = b"(" + storage + _number(0) + sizes + steps + b"\x89" + ordered
        code += _text(name) + rebuild + arguments + b"tR"
    return code + b"u."


def _laid_out(shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    count, strides = 1, list[int]()
    for dim in reversed(shape):
        strides.append(count)
        count *= dim
    return count, tuple(reversed(strides))


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _number(value: int) -> bytes:
    # As pickle writes it, without the protocol before and the end after.
    return pickle.dumps(value, 2)[2:-1]


def sparse_checkpoint(path: Path, size: int) -> Path:
    """``path``, now a checkpoint of at least ``size`` bytes, all in holes."""
    length = LARGE[0] * LARGE[1] * FLOAT
    count = max(1, -(-size // length))
    return _written(path, [(f"layers.{n}.weight", LARGE) for n in range(count)])


def wide_checkpoint(path: Path, count: int) -> Path:
    """``path``, now a checkpoint of ``count`` tensors of six numbers."""
    return _written(path, [(f"layers.{n}.weight", (2, 3)) for n in range(count)])


def _written(path: Path, tensors: list[tuple[str, tuple[int, ...]]]) -> Path:
    pickled = _pickled((name, str(n), shape) for n, (name, shape) in enumerate(tensors))
    sums: dict[int, int] = {}
    with open(path, "wb") as file:
        entries = [_add(file, "net/data.pkl", pickled, 0, zlib.crc32(pickled))]
        for n, (_, shape) in enumerate(tensors):
            length = _laid_out(shape)[0] * FLOAT
            if length not in sums:
                sums[length] = zlib.crc32(bytes(length))
            entries.append(_add(file, f"net/data/{n}", b"", length, sums[length]))
        entries.append(_add(file, "net/version", b"3\n", 0, zlib.crc32(b"3\n")))
        _close(file, entries)
    return path


def _add(file: BinaryIO, name: str, data: bytes, zeros: int, crc: int) -> bytes:
    """The entry of the list at the end, of data and a hole that are now in the file."""
    start, size, text = file.tell(), len(data) + zeros, name.encode()
    padding = -(start + 30 + len(text) + 4) % 64
    extra = struct.pack("<2H", 0x4246, padding) + b"Z" * padding
    fields = (20, 0, 0, 0, 0x21, crc, size, size, len(text))
    file.write(struct.pack("<I5H3I2H", _LOCAL, *fields, len(extra)) + text + extra)
    file.write(data)
    file.seek(zeros, 1)
    wide = struct.pack("<2HQ", 1, 8, start) if start >= _MOST else b""
    head = struct.pack("<I6H3I", _CENTRAL, 45, *fields[:5], *fields[5:8])
    tail = struct.pack("<5H2I", len(text), len(wide), 0, 0, 0, 0, min(start, _MOST))
    return head + tail + text + wide


def _close(file: BinaryIO, entries: list[bytes]) -> None:
    """Write the list of entries, and where it is, in the form for large files."""
    start, whole = file.tell(), b"".join(entries)
    count = len(entries)
    end = start + len(whole)
    wide = struct.pack("<IQ2H2I", _WIDE_END, 44, 45, 45, 0, 0)
    wide += struct.pack("<4Q", count, count, len(whole), start)
    index = struct.pack("<IIQI", _WIDE_PLACE, 0, end, 1)
    last = struct.pack("<I4H2IH", _END, 0, 0, 0xFFFF, 0xFFFF, _MOST, _MOST, 0)
    file.write(whole + wide + index + last)
