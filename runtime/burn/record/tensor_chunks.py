"""Tensors to be written to a record: checked, described, and read in small chunks."""

import operator
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from burn.record.dtypes import DTYPES, TAGS, Array, Bytes, DType, pack_f4, recorded
from burn.record.errors import RecordError, shown
from burn.record.header import check_name, data_length
from burn.record.memory_advice import forget, read_ahead
from burn.record.precision import Precision, at_precision, converted

#: Small enough for a processor's cache.
CHUNK = 2**20

BytesLike: TypeAlias = bytes | bytearray | memoryview


@runtime_checkable
class TensorSource(Protocol):
    """A tensor whose bytes are generated while it is written.

    ``chunks()`` yields the bytes in C order and little-endian, in chunks of any size;
    in total they are exactly those of ``dtype`` and ``shape`` (``F4``: two elements in
    a byte, the first in the low half).
    """

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def chunks(self) -> Iterable[BytesLike]: ...


Source: TypeAlias = TensorSource | Array


class Piece(NamedTuple):
    """A tensor of a record: its dtype tag, shape, length and source."""

    name: str
    tag: str
    shape: tuple[int, ...]
    length: int
    source: Source

    def chunks(self) -> Iterator[BytesLike]:
        """Yield the bytes, at most 1 MB of an array at a time.

        Raises:
            RecordError: the source yields more or fewer bytes, or values out of range.
        """
        source = self.source
        chunks = (
            self._of_array(source)
            if isinstance(source, np.ndarray)
            else self._of_source(source)
        )
        got = 0
        for chunk in chunks:
            got += memoryview(chunk).nbytes
            if got > self.length:
                break
            yield chunk
        if got != self.length:
            more = "at least " if got > self.length else ""
            raise RecordError(
                f"tensor {shown(self.name)}: its source announced {self.length} bytes, "
                f"got {more}{got}"
            )

    def _of_source(self, source: TensorSource) -> Iterable[BytesLike]:
        dtype = np.dtype(source.dtype)
        if recorded(dtype).name == DTYPES[self.tag].name:
            return source.chunks()
        array = np.frombuffer(b"".join(map(bytes, source.chunks())), dtype)
        return self._of_array(array)

    def _of_array(self, array: Array) -> Iterator[BytesLike]:
        blocks: Iterable[Bytes] = self._encoded(array)
        if self.tag == "F4":
            blocks = pack_f4(blocks)
        for block in blocks:
            yield block.data

    def _encoded(self, array: Array) -> Iterator[Bytes]:
        dtype = DTYPES[self.tag]
        is_other = recorded(array.dtype).name != dtype.name
        for block in _blocks(array):
            read_ahead(block)
            values = self._converted(block, dtype) if is_other else block
            yield np.ascontiguousarray(values, dtype=dtype).reshape(-1).view(np.uint8)
            forget(block)

    def _converted(self, block: Array, dtype: DType) -> Array:
        try:
            return converted(block, dtype)
        except RecordError as problem:
            raise RecordError(f"tensor {shown(self.name)}: {problem}") from None


def pieces(
    tensors: Iterable[tuple[str, Source]], precision: Precision | None = None
) -> dict[str, Piece]:
    """Return the tensors by name, in the dtype in which they are written.

    Raises:
        RecordError: a name is reserved, repeated or not text; a dtype or shape is not
            supported in records.
    """
    result: dict[str, Piece] = {}
    for name, source in tensors:
        if check_name(name) in result:
            raise RecordError(f"tensor {shown(name)}: duplicate name")
        tag, shape = _kind(name, source, precision)
        try:
            length = data_length(tag, shape)
        except RecordError as problem:
            raise RecordError(f"tensor {shown(name)}: {problem}") from None
        result[name] = Piece(name, tag, shape, length, source)
    return result


def _kind(
    name: str, source: Source, precision: Precision | None
) -> tuple[str, tuple[int, ...]]:
    if not isinstance(source, np.ndarray | TensorSource):
        raise RecordError(
            f"tensor {shown(name)}: expected an array or a TensorSource, "
            f"got {type(source).__name__}"
        )
    dtype = recorded(np.dtype(source.dtype).newbyteorder("="))
    if precision is not None:
        dtype = at_precision(dtype, precision)
    if dtype.name not in TAGS:
        raise RecordError(
            f"tensor {shown(name)}: dtype {dtype.name} has no place in safetensors, "
            f"expected one of {', '.join(TAGS)}"
        )
    return TAGS[dtype.name], tuple(operator.index(dim) for dim in source.shape)


def _blocks(array: Array) -> Iterator[Array]:
    """Yield views that split an array in C order into blocks of at most 1 MB."""
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
