"""Sharded models: several files with an index of their tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from burn.record import RecordError
from burn.record.errors import shown
from burn.record.shards import read_index
from burn_import.frontends.checkpoints.checkpoint import Checkpoint, LazyTensor
from burn_ir import InvalidModel, UnreadableFile


def read_shards(path: Path, read: Callable[[Path], Checkpoint]) -> Checkpoint:
    """Return the tensors of all the files that the index at ``path`` names.

    Raises:
        UnreadableFile: the index is damaged, or names a file that is not beside it.
        InvalidModel: a tensor is missing from the file that the index names.
    """
    try:
        index = read_index(path)
    except RecordError as error:
        raise UnreadableFile(str(error)) from error
    shards: dict[Path, Checkpoint] = {}
    tensors: dict[str, LazyTensor] = {}
    for name, file in index.files.items():
        if file not in shards:
            shards[file] = read(file)
        if name not in shards[file]:
            raise InvalidModel(f"tensor {shown(name)}: not in {shown(file.name)}")
        tensors[name] = shards[file][name]
    skipped = {
        f"{name} in {file.name}": "a tensor that the index does not name"
        for file, shard in shards.items()
        for name in shard
        if index.files.get(name) != file
    }
    return Checkpoint(path, "sharded", tensors, index.metadata, skipped=skipped)
