"""Records as sources and destinations of stores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from burn.record import (
    Precision,
    Record,
    RecordError,
    read_record,
    record_of_bytes,
    write_record,
)
from burn.record.burn_formats import has_precision
from burn.record.shards import ShardedRecord, is_index, open_shards, stored_at
from burn.store.tensors import Content, Recorded, StoredTensor


class FileOrigin(NamedTuple):
    """A record, or the index of a sharded one; the file need not exist yet."""

    path: str | os.PathLike[str]
    mmap: bool = True
    most_inflated: int | None = None
    shard_size: int | str | None = None

    @property
    def name(self) -> str:
        return os.fspath(self.path)

    def read(self) -> Content:
        path = stored_at(self.path)
        if is_index(path):
            return content_of(open_shards(path, mmap=self.mmap))
        return content_of(
            read_record(path, self.mmap, most_inflated=self.most_inflated)
        )

    def write(
        self,
        tensors: Mapping[str, StoredTensor],
        metadata: Mapping[str, str],
        precision: Precision | None,
    ) -> None:
        arrays = ((name, tensor.array()) for name, tensor in tensors.items())
        write_record(
            self.path, arrays, metadata, precision=precision, shard_size=self.shard_size
        )


class BytesOrigin(NamedTuple):
    """A record in memory."""

    data: bytes
    format_name: str
    name: str = "bytes"

    def read(self) -> Content:
        return content_of(record_of_bytes(self.data, self.format_name))

    def write(
        self,
        tensors: Mapping[str, StoredTensor],
        metadata: Mapping[str, str],
        precision: Precision | None,
    ) -> None:
        raise RecordError("expected a file to write to, got bytes; see Store.to_bytes")


def content_of(record: Record | ShardedRecord) -> Content:
    """Return the tensors of a record, and whether it was saved at a fixed precision."""
    tensors = {name: Recorded(record, name) for name in record}
    return Content(tensors, has_precision=has_precision(record.metadata))
