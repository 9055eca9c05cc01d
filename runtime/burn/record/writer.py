"""Safetensors files, written as a stream that holds one chunk at a time."""

import hashlib
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from burn.record.atomic import atomic_file
from burn.record.dtypes import (
    DTYPES,
    TAGS,
    Array,
    Bytes,
    DType,
    bits,
    pack_f4,
    recorded,
)
from burn.record.errors import RecordError, shown
from burn.record.header import Entry, check_name, data_length, encode_header

CHUNK = 8 * 2**20

BytesLike: TypeAlias = bytes | bytearray | memoryview


@runtime_checkable
class TensorSource(Protocol):
    """A tensor whose bytes are made while it is written.

    ``chunks()`` gives the bytes in C order and little-endian, of any chunk
    size; all together they are exactly those of ``dtype`` and ``shape``
    (``F4``: two elements in a byte, the first in the low half).
    """

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def chunks(self) -> Iterable[BytesLike]: ...


Source: TypeAlias = TensorSource | Array


def write_record(
    path: str | os.PathLike[str],
    tensors: Iterable[tuple[str, Source]],
    metadata: Mapping[str, str] | None = None,
) -> str:
    """The SHA-256 (hex) of the safetensors file now at ``path``.

    Arrays of any strides and byte order are written in pieces of at most 8 MB,
    so a broadcast view is never materialised. The header lists the tensors in
    the order given; their bytes lie by falling element size (and then in the
    order given), so that each is aligned for its type. The same input gives the
    same bytes.

    The file is published as ``atomic_write`` does: on any failure the old one
    stays. Raises ``RecordError``, before anything is written, for a name that is
    reserved, repeated or not text, and for a dtype or shape that the format
    lacks; and for a source that gives more or fewer bytes than it announced.
    """
    try:
        sources = _unique(tensors)
        entries = _layout(sources)
        header = encode_header(entries, metadata or {})
        digest = hashlib.sha256()
        with atomic_file(path) as file:
            for chunk in _stream(header, sources, entries):
                digest.update(chunk)
                file.write(chunk)
    except RecordError as problem:
        raise RecordError(f"{os.fspath(path)}: {problem}") from problem
    return digest.hexdigest()


def _unique(tensors: Iterable[tuple[str, Source]]) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for name, source in tensors:
        if check_name(name) in sources:
            raise RecordError(f"tensor {shown(name)}: duplicate name")
        sources[name] = source
    return sources


def _layout(sources: Mapping[str, Source]) -> dict[str, Entry]:
    """The tensors' entries in the order given, each at its place in the data."""
    kinds = {name: _kind(name, source) for name, source in sources.items()}
    places: dict[str, Entry] = {}
    at = 0
    for name in sorted(kinds, key=lambda name: -bits(kinds[name][0])):
        tag, shape = kinds[name]
        end = at + _length(name, tag, shape)
        places[name] = Entry(tag, shape, at, end)
        at = end
    return {name: places[name] for name in kinds}


def _kind(name: str, source: Source) -> tuple[str, tuple[int, ...]]:
    if not isinstance(source, np.ndarray | TensorSource):
        raise RecordError(
            f"tensor {shown(name)}: expected an array or a TensorSource, "
            f"got {type(source).__name__}"
        )
    dtype = recorded(np.dtype(source.dtype))
    if dtype.name not in TAGS:
        raise RecordError(
            f"tensor {shown(name)}: dtype {dtype.name} has no place in safetensors, "
            f"expected one of {', '.join(TAGS)}"
        )
    return TAGS[dtype.name], tuple(operator.index(dim) for dim in source.shape)


def _length(name: str, tag: str, shape: tuple[int, ...]) -> int:
    try:
        return data_length(tag, shape)
    except RecordError as problem:
        raise RecordError(f"tensor {shown(name)}: {problem}") from None


def _stream(
    header: bytes, sources: Mapping[str, Source], entries: Mapping[str, Entry]
) -> Iterator[BytesLike]:
    yield header
    for name in sorted(entries, key=lambda name: _place(entries[name])):
        source, entry = sources[name], entries[name]
        chunks = (
            _array_chunks(source, entry.tag)
            if isinstance(source, np.ndarray)
            else source.chunks()
        )
        yield from _counted(name, chunks, entry.end - entry.begin)


def _place(entry: Entry) -> tuple[int, int]:
    return entry.begin, entry.end


def _counted(
    name: str, chunks: Iterable[BytesLike], expected: int
) -> Iterator[BytesLike]:
    """The chunks; a ``RecordError`` where they are not ``expected`` bytes."""
    got = 0
    for chunk in chunks:
        got += memoryview(chunk).nbytes
        if got > expected:
            break
        yield chunk
    if got != expected:
        more = "at least " if got > expected else ""
        raise RecordError(
            f"tensor {shown(name)}: its source announced {expected} bytes, "
            f"got {more}{got}"
        )


def _array_chunks(array: Array, tag: str) -> Iterable[BytesLike]:
    """The bytes of an array in the file's encoding, at most 8 MB at a time."""
    blocks: Iterable[Bytes] = (
        np.ascontiguousarray(block, dtype=DTYPES[tag]).reshape(-1).view(np.uint8)
        for block in _blocks(array)
    )
    if tag == "F4":
        blocks = pack_f4(blocks)
    return (block.data for block in blocks)


def _blocks(array: Array) -> Iterator[Array]:
    """Views that cut an array in C order into pieces of at most 8 MB."""
    if array.nbytes <= CHUNK:
        yield array
        return
    row = array.nbytes // len(array)
    if row > CHUNK:
        for part in array:
            yield from _blocks(part)
        return
    step = CHUNK // row
    for start in range(0, len(array), step):
        yield array[start : start + step]
