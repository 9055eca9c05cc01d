"""Sharded records, and the index with the file of each tensor.

The index is a JSON object with a ``weight_map`` of tensor names to file names, in the
format of the Hugging Face hub. The files are in the folder of the index.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from burn.record.errors import MOST_SHOWN, RecordError, check_values, joined, shown
from burn.record.files import MAX_HEADER
from burn.record.reader import Record, open_record

_WEIGHT_MAP = "expected the index of a sharded model, with a weight_map"


@dataclass(frozen=True)
class Index:
    """The file of each tensor, and the metadata of the index."""

    files: dict[str, Path]
    metadata: dict[str, str]


def is_index(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is named like the index of a sharded model."""
    return os.fspath(path).endswith(".index.json")


def read_index(path: Path) -> Index:
    """Return the index at ``path``.

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
    if missing:
        raise RecordError(
            f"{', '.join(missing[:MOST_SHOWN])}: there is no such file beside the "
            "index; download all files that it names to "
            f"{str(path.parent.absolute())!r}"
        )
    about = index.get("metadata")
    about = about if isinstance(about, dict) else {}
    return Index(
        {name: names[file_name] for name, file_name in weight_map.items()},
        {key: str(v) for key, v in about.items() if isinstance(v, str | int)},
    )


def open_shards(
    path: str | os.PathLike[str], *, mmap: bool = True
) -> dict[str, Record]:
    """Return the record of each tensor in the index at ``path``, in its order.

    Raises:
        RecordError: the index or one of its files is damaged, or a tensor is not in the
            file that the index names.
        OSError: a file cannot be opened.
    """
    path = Path(path)
    try:
        index = read_index(path)
    except RecordError as problem:
        raise RecordError(f"{path}: {problem}") from None
    shards = {file: open_record(file, mmap) for file in set(index.files.values())}
    records = {name: shards[file] for name, file in index.files.items()}
    problems = [
        f"tensor {shown(name)}: not in {shown(index.files[name].name)}"
        for name, record in records.items()
        if name not in record
    ]
    if problems:
        raise RecordError(f"{path}: {joined(problems)}")
    return records


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
