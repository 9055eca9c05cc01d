"""Streaming writers of records, with one chunk in memory at a time."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from burn.digests import sha256
from burn.record.atomic import atomic_file
from burn.record.errors import RecordError
from burn.record.formats import encoded, format_named
from burn.record.precision import Precision
from burn.record.sharding import (
    Shards,
    check_record_name,
    parse_size,
    plan_shards,
    shards_sha256,
    write_shards,
)
from burn.record.tensor_chunks import Piece, Source, pieces


def write_record(
    path: str | os.PathLike[str],
    tensors: Iterable[tuple[str, Source]],
    metadata: Mapping[str, str] | None = None,
    *,
    precision: Precision | None = None,
    shard_size: int | str | None = None,
) -> None:
    """Write the record at ``path``, in pieces that are on the disk when it returns.

    Its name says the format (``FORMATS``: ``.mpk``, ``.bpk``, ``.json.gz``, ...), which
    is safetensors otherwise. Arrays of any strides and byte order are written in pieces
    of at most 1 MB, so a broadcast view is never materialised, and a mapped file does
    not fill the memory. The tensors are listed in the order given. In safetensors their
    bytes lie by falling element size (and then in the order given), so that each is
    aligned for its type. The same input gives the same bytes. With a ``precision`` all
    floats have one dtype and all integers another: float32 and int32 (full), float16
    and int16 (half), float64 and int64 (double).

    Safetensors larger than ``shard_size`` bytes (or ``"5GB"``) are written as files of
    at most this size, ``net-00001-of-00002.safetensors`` for ``net.safetensors``, and
    an index ``net.safetensors.index.json``. They replace the file at ``path``.

    The file is published as ``atomic_write`` does: on any failure the old one
    stays. Raises ``RecordError``, before anything is written, for a name that is
    reserved, repeated or not text, and for a dtype or shape that the format
    lacks; and for a source that gives more or fewer bytes than it announced, or values
    that the precision has no room for.
    """
    try:
        check_record_name(Path(path))
        written = pieces(tensors, precision)
        if shards := _shards(path, written, shard_size):
            write_shards(Path(path), shards, metadata or {}, precision)
            return
        chunks = encoded(format_named(path), written, metadata or {}, precision)
        with atomic_file(path) as file:
            for chunk in chunks:
                file.write(chunk)
    except RecordError as problem:
        raise RecordError(f"{os.fspath(path)}: {problem}") from problem


def _shards(
    path: str | os.PathLike[str],
    written: Mapping[str, Piece],
    shard_size: int | str | None,
) -> Shards:
    """Return the files of a record; empty if it is written in one."""
    if shard_size is None or format_named(path) != "safetensors":
        return {}
    return plan_shards(Path(path).name, written, parse_size(shard_size))


def shard_names(
    path: str | os.PathLike[str],
    tensors: Iterable[tuple[str, Source]],
    precision: Precision | None = None,
    shard_size: int | str | None = None,
) -> list[str]:
    """Return the names of the files beside the index that ``write_record`` would write.

    Empty if it would write one file.
    """
    return list(_shards(path, pieces(tensors, precision), shard_size))


def record_sha256(
    path: str | os.PathLike[str],
    tensors: Iterable[tuple[str, Source]],
    metadata: Mapping[str, str] | None = None,
    *,
    precision: Precision | None = None,
    shard_size: int | str | None = None,
) -> str:
    """Return the SHA-256 (hex) of the file or index that ``write_record`` would write.

    Raises:
        RecordError: as ``write_record``.
    """
    digest = sha256()
    written = pieces(tensors, precision)
    if shards := _shards(path, written, shard_size):
        return shards_sha256(shards, metadata or {}, precision)
    for chunk in encoded(format_named(path), written, metadata or {}, precision):
        digest.update(chunk)
    return digest.hexdigest()


def record_bytes(
    format_name: str,
    tensors: Iterable[tuple[str, Source]],
    metadata: Mapping[str, str] | None = None,
    *,
    precision: Precision | None = None,
) -> bytes:
    """Return the bytes of the record that ``write_record`` writes in a format.

    Raises:
        RecordError: as ``write_record``, or the format is unknown.
    """
    written = pieces(tensors, precision)
    return b"".join(encoded(format_name, written, metadata or {}, precision))
