"""Writing of sharded records: safetensors files, and the index of their tensors.

The names are those of the Hugging Face hub: ``net-00001-of-00002.safetensors`` and
``net.safetensors.index.json``, whose metadata has the ``total_size`` and also the
``sha256`` of each file.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from burn.digests import sha256
from burn.record.atomic import atomic_file
from burn.record.burn_formats import settings
from burn.record.errors import RecordError, shown
from burn.record.precision import Precision
from burn.record.safetensors import encode
from burn.record.shards import index_of, read_index
from burn.record.tensor_chunks import BytesLike, Piece

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SIZE = re.compile(r"([0-9]{1,15}) *([KMGT]I?B)?", re.IGNORECASE)
#: Most files of a record: the number in their names has five digits.
_MOST_SHARDS = 99_999

#: The tensors of each file, by the names of the files and of the tensors.
Shards = Mapping[str, Mapping[str, Piece]]


def parse_size(size: int | str) -> int:
    """Return a number of bytes, given as such or as text: ``"5GB"``, ``"512 MiB"``.

    Raises:
        ValueError: it has another form, or is 0.
    """
    match = _SIZE.fullmatch(str(size).strip())
    count = int(match[1]) * _UNITS[(match[2] or "").upper()] if match else 0
    if count < 1 or isinstance(size, bool):
        raise ValueError(
            f"expected a size of shards in bytes, such as 5GB or 512MiB, got {size!r}"
        )
    return count


def plan_shards(name: str, pieces: Mapping[str, Piece], shard_size: int) -> Shards:
    """Return the files of the record ``name``, each of at most ``shard_size`` bytes.

    A tensor that is larger has a file of its own. Empty if one file is enough.

    Raises:
        RecordError: there are more files than their names can number.
    """
    groups: list[dict[str, Piece]] = [{}]
    size = 0
    for key, piece in pieces.items():
        if groups[-1] and size + piece.length > shard_size:
            groups.append({})
            size = 0
        groups[-1][key] = piece
        size += piece.length
    if len(groups) == 1:
        return {}
    if len(groups) > _MOST_SHARDS:
        raise RecordError(
            f"expected at most {_MOST_SHARDS} shards, got {len(groups)} of at most "
            f"{shard_size} bytes each"
        )
    stem = name.removesuffix(".safetensors")
    return {
        f"{stem}-{number:05}-of-{len(groups):05}.safetensors": group
        for number, group in enumerate(groups, 1)
    }


def write_shards(
    path: Path, shards: Shards, metadata: Mapping[str, str], precision: Precision | None
) -> None:
    """Write the files of the record at ``path`` and its index, in place of older ones.

    All are complete on the disk before the first is put in its place.
    """
    index = index_of(path)
    old = _files_of(index)
    metadata = _with_settings(metadata, precision)
    digests: dict[str, str] = {}
    with ExitStack() as stack:  # closed in reverse: the index comes into place last
        target = stack.enter_context(atomic_file(index))
        for name, pieces in shards.items():
            file = stack.enter_context(atomic_file(path.with_name(name)))
            digests[name] = _write(file, encode(pieces, metadata, precision))
        target.write(index_bytes(shards, digests, metadata))
    path.unlink(missing_ok=True)
    for name in old - shards.keys():
        path.with_name(name).unlink(missing_ok=True)


def shards_sha256(
    shards: Shards, metadata: Mapping[str, str], precision: Precision | None
) -> str:
    """Return the SHA-256 (hex) of the index that ``write_shards`` would write."""
    metadata = _with_settings(metadata, precision)
    digests = {}
    for name, pieces in shards.items():
        digest = sha256()
        for chunk in encode(pieces, metadata, precision):
            digest.update(chunk)
        digests[name] = digest.hexdigest()
    return sha256(index_bytes(shards, digests, metadata)).hexdigest()


def index_bytes(
    shards: Shards, digests: Mapping[str, str], metadata: Mapping[str, str]
) -> bytes:
    """Return the contents of the index of shards with these digests."""
    pieces = chain.from_iterable(group.values() for group in shards.values())
    total = sum(piece.length for piece in pieces)
    index = {
        "metadata": {**metadata, "total_size": total, "sha256": dict(digests)},
        "weight_map": {key: name for name, group in shards.items() for key in group},
    }
    return (json.dumps(index, indent=2) + "\n").encode("ascii")


def _with_settings(
    metadata: Mapping[str, str], precision: Precision | None
) -> Mapping[str, str]:
    """Return metadata that names the precision, as that of each shard does."""
    return {**metadata, "settings": settings(precision)} if precision else metadata


def _write(file: BinaryIO, chunks: Iterator[BytesLike]) -> str:
    """Write chunks, and return their SHA-256 (hex) when they are on the disk."""
    digest = sha256()
    for chunk in chunks:
        digest.update(chunk)
        file.write(chunk)
    file.flush()
    os.fsync(file.fileno())
    return digest.hexdigest()


def _files_of(index: Path) -> set[str]:
    """Return the names of the shards of an older record that ours are named like."""
    stem = re.escape(index.name.removesuffix(".safetensors.index.json"))
    ours = re.compile(rf"{stem}-[0-9]{{5}}-of-[0-9]{{5}}\.safetensors")
    try:
        files = read_index(index, require=False).files if index.is_file() else {}
    except RecordError:
        return set()
    return {file.name for file in files.values() if ours.fullmatch(file.name)}


def check_record_name(path: Path) -> None:
    """Check that ``path`` is not the name of an index, which is written beside shards.

    Raises:
        RecordError: it is.
    """
    if path.name.endswith(".index.json"):
        name = path.name.removesuffix(".index.json")
        raise RecordError(
            f"expected the name of a record, such as {shown(name)}, got that of an "
            "index; a record larger than the size of a shard gets one"
        )
