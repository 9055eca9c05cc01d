"""Models in several files, and the index that says which tensor is in which.

The index is a JSON object with a ``weight_map`` of tensor names to file names, as the
Hugging Face hub has it. A file it names lies beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from burn.record.errors import shown
from burn_import.onnx.files import ExternalFiles
from burn_import.pytorch.checkpoint import Checkpoint, LazyTensor
from burn_ir import InvalidModel, UnreadableFile

_MOST_BYTES = 100_000_000


def read_index(
    path: Path, data: memoryview, read: Callable[[Path], Checkpoint]
) -> Checkpoint:
    """The tensors of all the files that the index at ``path`` names.

    Raises:
        UnreadableFile: the index is damaged, or names a file that is not beside it.
        InvalidModel: a tensor is not in the file that should have it.
    """
    index = _parsed(data)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise UnreadableFile("expected the index of a sharded model, with a weight_map")
    shards: dict[str, Checkpoint] = {}
    tensors: dict[str, LazyTensor] = {}
    for name, file in weight_map.items():
        if file not in shards:
            shards[file] = read(_beside(path, file))
        if name not in shards[file]:
            raise InvalidModel(f"tensor {shown(name)}: not in {shown(file)}")
        tensors[name] = shards[file][name]
    skipped = {
        f"{name} in {file}": "a tensor that the index does not name"
        for file, shard in shards.items()
        for name in shard
        if weight_map.get(name) != file
    }
    about = index.get("metadata")
    about = about if isinstance(about, dict) else {}
    metadata = {key: str(v) for key, v in about.items() if isinstance(v, str | int)}
    return Checkpoint(path, "sharded", tensors, metadata, skipped=skipped)


def _beside(index: Path, file: Any) -> Path:
    """The file of this name in the folder of the index."""
    if not isinstance(file, str) or file in ("", ".", "..") or {*file} & {*"/\\:\0"}:
        raise UnreadableFile(
            f"expected the name of a file beside the index, got {shown(file)}"
        )
    path = index.parent / file
    if not path.is_file():
        raise UnreadableFile(f"{shown(file)}: there is no such file beside the index")
    ExternalFiles(index).open(file, "of a shard")
    return path


def _parsed(data: memoryview) -> dict[str, Any]:
    if len(data) > _MOST_BYTES:
        raise UnreadableFile(f"an index of {len(data)} bytes")
    try:
        index = json.loads(
            bytes(data).decode("utf-8-sig"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"the index is not JSON: {shown(str(error))}") from None
    if not isinstance(index, dict):
        raise UnreadableFile("expected the index of a sharded model, with a weight_map")
    return index


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise UnreadableFile(f"the index has {shown(key)} twice")
        result[key] = value
    return result


def _no_constant(name: str) -> NoReturn:
    raise UnreadableFile(f"the index has {shown(name)}, which is not JSON")
