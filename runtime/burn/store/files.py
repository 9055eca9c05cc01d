"""Records as places that stores read from and write to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from burn.record import open_record, write_record
from burn.record.shards import is_index, open_shards
from burn.store.tensors import Content, Recorded, StoredTensor, tensors_of


@dataclass(frozen=True, eq=False)
class FileOrigin:
    """A record, or the index of one in shards; the file need not be there yet."""

    path: str | os.PathLike[str]
    mmap: bool = True

    @property
    def name(self) -> str:
        return os.fspath(self.path)

    def read(self) -> Content:
        if is_index(self.path):
            shards = open_shards(self.path, mmap=self.mmap)
            return Content({name: Recorded(shards[name], name) for name in shards})
        return Content(tensors_of(open_record(self.path, mmap=self.mmap)))

    def write(
        self, tensors: Mapping[str, StoredTensor], metadata: Mapping[str, str]
    ) -> None:
        write_record(
            self.path,
            ((name, tensor.array()) for name, tensor in tensors.items()),
            metadata,
        )
