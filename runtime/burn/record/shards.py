"""Reading of sharded records, by the index with the file of each tensor.

The index is a JSON object with a ``weight_map`` of tensor names to file names, in the
format of the Hugging Face hub. The files are in the folder of the index.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from burn.digests import file_sha256_of
from burn.record.dtypes import Array, DType
from burn.record.errors import MOST_SHOWN, RecordError, check_values, joined, shown
from burn.record.files import MAX_HEADER
from burn.record.reader import Record, open_record
from burn.record.zipped_records import open_binary

#: The ending of an index's name, after the name of the record.
_INDEX = ".index.json"
_WEIGHT_MAP = "expected the index of a sharded model, with a weight_map"


class Index(NamedTuple):
    """The file of each tensor, the metadata of the index, and digests of files.

    ``sha256`` has those (hex) by file name; other writers give none.
    """

    files: dict[str, Path]
    metadata: dict[str, str]
    sha256: dict[str, str]


class ShardedRecord(Mapping[str, Array]):
    """A record in several files, as a read-only mapping like ``Record``."""

    def __init__(self, path: Path, index: Index, records: dict[str, Record]) -> None:
        self.path = path
        self.metadata = index.metadata
        self._records = records

    def __getitem__(self, name: str) -> Array:
        """Return a tensor as a read-only array; see ``Record``."""
        return self._records[name][name]

    def info(self, name: str) -> tuple[DType, tuple[int, ...]]:
        """Return the dtype and shape of a tensor, without reading its bytes."""
        return self._records[name].info(name)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def is_index(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is named like the index of a sharded model."""
    return os.fspath(path).endswith(_INDEX)


def index_of(path: Path) -> Path:
    """Return the path of the index that the record at ``path`` has if it is sharded."""
    return path.with_name(f"{path.name}{_INDEX}")


def stored_at(path: str | os.PathLike[str]) -> Path:
    """Return ``path``, or the index beside it if the record was written in shards."""
    path = Path(path)
    if is_index(path) or path.exists():
        return path
    index = index_of(path)
    return index if index.is_file() else path


def written_files(path: str | os.PathLike[str], shards: Sequence[str]) -> list[Path]:
    """Return the files of the record at ``path`` if these are the names of its shards.

    The first is the file of a record without shards, or the index.
    """
    path = Path(path)
    if not shards:
        return [path]
    return [index_of(path), *(path.with_name(name) for name in shards)]


def record_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files of the record at ``path``: it alone, or the index and shards.

    Raises:
        RecordError: the index is damaged, or a shard is missing.
    """
    path = stored_at(path)
    if not is_index(path):
        return [path]
    return [path, *dict.fromkeys(_index_at(path).files.values())]


def file_sha256(path: str | os.PathLike[str], *, require: bool = True) -> str:
    """Return the SHA-256 (hex) of a record's file.

    Of a sharded record it is that of the index, which has the digests of the shards;
    ``require`` that all of them exist.

    Raises:
        RecordError: the index is damaged, or a shard is missing or has another digest.
        OSError: a file cannot be read.
    """
    path = stored_at(path)
    if is_index(path):
        index = _index_at(path, require=require)
        for file in filter(Path.is_file, dict.fromkeys(index.files.values())):
            expected, actual = index.sha256.get(file.name), _digest(file)
            if expected not in (None, actual):
                raise RecordError(
                    f"{file}: expected the SHA-256 {expected} of {path.name}, got "
                    f"{actual}: it is damaged, or of another model"
                )
    return _digest(path)


def _digest(path: Path) -> str:
    with open_binary(path) as file:
        return file_sha256_of(file)


def read_index(path: Path, *, require: bool = True) -> Index:
    """Return the index at ``path``; ``require`` that its files exist.

    Raises:
        RecordError: it is damaged, or names a file in another folder.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        index = _parsed(file.read(MAX_HEADER + 1))
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise RecordError(_WEIGHT_MAP)
    names: dict[Any, Path] = {}
    for file_name in weight_map.values():
        if not isinstance(file_name, str) or file_name not in names:
            names[file_name] = _beside(path, file_name)
    missing = [shown(name) for name, file in names.items() if not file.is_file()]
    if missing and require:
        raise RecordError(
            f"{', '.join(missing[:MOST_SHOWN])}: there is no such file beside the "
            "index; download all files that it names to "
            f"{str(path.parent.absolute())!r}"
        )
    about = index.get("metadata")
    about = about if isinstance(about, dict) else {}
    digests = about.get("sha256")
    digests = digests if isinstance(digests, dict) else {}
    return Index(
        {name: names[file_name] for name, file_name in weight_map.items()},
        {key: str(v) for key, v in about.items() if isinstance(v, str | int)},
        {key: value for key, value in digests.items() if isinstance(value, str)},
    )


def open_stored(
    path: str | os.PathLike[str], mmap: bool = True
) -> Record | ShardedRecord:
    """Return the safetensors record at ``path``, in one file or in shards.

    Raises ``RecordError`` and ``OSError`` like ``open_record`` and ``open_shards``.
    """
    path = stored_at(path)
    return open_shards(path, mmap=mmap) if is_index(path) else open_record(path, mmap)


def open_shards(path: str | os.PathLike[str], *, mmap: bool = True) -> ShardedRecord:
    """Return the tensors in the index at ``path``, in its order.

    Raises:
        RecordError: the index or one of its files is damaged, or a tensor is not in the
            file that the index names.
        OSError: a file cannot be opened.
    """
    path = Path(path)
    index = _index_at(path)
    shards = {file: open_record(file, mmap) for file in set(index.files.values())}
    records = {name: shards[file] for name, file in index.files.items()}
    problems = [
        f"tensor {shown(name)}: not in {shown(index.files[name].name)}"
        for name, record in records.items()
        if name not in record
    ]
    if problems:
        raise RecordError(f"{path}: {joined(problems)}")
    return ShardedRecord(path, index, records)


def _index_at(path: Path, *, require: bool = True) -> Index:
    try:
        return read_index(path, require=require)
    except RecordError as problem:
        raise RecordError(f"{path}: {problem}") from None


def _beside(index: Path, name: Any) -> Path:
    """Return the file of this name in the folder of the index."""
    if not isinstance(name, str) or name in ("", ".", "..") or {*name} & {*"/\\:\0"}:
        raise RecordError(
            f"expected the name of a file beside the index, got {shown(name)}"
        )
    path = index.parent / name
    if not lies_in(path, index.parent):
        raise RecordError(
            f"{shown(name)}: expected a file in the directory of the index, "
            "this one is outside"
        )
    return path


def lies_in(path: Path, directory: Path) -> bool:
    """Return whether a file is in a directory after resolving links.

    In the Hugging Face cache every file is a link to a blob, which is accepted.
    """
    real, folder = (Path(os.path.realpath(item)) for item in (path, directory))
    return real.is_relative_to(folder) or real.parent == _blobs(folder)


def _blobs(directory: Path) -> Path | None:
    """Return the folder of blobs in the Hugging Face cache of ``directory``.

    Its layout is ``<repository>/snapshots/<revision>/...`` and ``<repository>/blobs``.
    """
    for parent in (directory, *directory.parents):
        if parent.parent.name == "snapshots":
            return parent.parent.parent / "blobs"
    return None


def _parsed(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_HEADER:
        raise RecordError(f"an index of more than {MAX_HEADER} bytes")
    check_values(data, "the index")
    try:
        index = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
        )
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"the index is not JSON: {shown(str(error))}") from None
    if not isinstance(index, dict):
        raise RecordError(_WEIGHT_MAP)
    return index


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise RecordError(f"the index has {shown(key)} twice")
        result[key] = value
    return result


def _no_constant(name: str) -> NoReturn:
    raise RecordError(f"the index has {shown(name)}, which is not JSON")
