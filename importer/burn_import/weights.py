"""Conversion of weight files to records, without the program that uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burn_import.fingerprint import same_array
from burn_import.options import SHARD_SIZE
from burn_import.output import OutputRefused
from burn_import.version import VERSION

if TYPE_CHECKING:
    from burn.dtypes import DType
    from burn.record import Precision, Record, ShardedRecord
    from burn_import.frontends.checkpoints import Checkpoint
    from burn_ir.types import Array

    Weights = Sequence[tuple[str, Array]]

_WRITER = "importer"


@dataclass(frozen=True)
class Row:
    """One tensor of a record; ``size`` is in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Converted:
    """A written record: its tensors, and whether its content changed.

    ``record`` is its file, or the index of its ``shards``. ``size`` is in bytes.
    ``skipped`` names entries of the file that are not
    tensors, with the reason.
    """

    record: Path
    changed: bool
    source: str
    rows: tuple[Row, ...]
    size: int
    skipped: Mapping[str, str]
    shards: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Source:
    """The memory-mapped contents of a file, and its kind."""

    weights: Weights
    kind: str
    skipped: Mapping[str, str]


def is_record_name(path: Path) -> bool:
    """Return whether a name has a record's suffix: ``.safetensors``, ..."""
    from burn.record import FORMATS

    return path.name.lower().endswith(tuple(f".{kind}" for kind in FORMATS))


def convert(
    source: str | Path,
    output: str | Path,
    top_level_key: str | None = None,
    *,
    precision: Precision | None = None,
    shard_size: int | None = SHARD_SIZE,
    force: bool = False,
    dry_run: bool = False,
) -> Converted:
    """Write all tensors in ``source`` to the record ``output``.

    The suffix selects the format. Safetensors larger than ``shard_size`` bytes are
    written in several files. The tensors keep names, shapes and dtypes unless
    ``precision`` changes these. A quantized tensor is written as its integers, with
    ``.scale`` and ``.zero_point`` beside it. The record is streamed to a temporary
    file, which replaces the old one when it is complete.

    Raises:
        UnreadableFile, UnsupportedModel, InvalidModel: as
            :func:`burn_import.frontends.checkpoints.read` does.
        UnreadableFile: the source is a record that is damaged.
        RecordError: a record cannot hold a tensor's name or dtype (complex128).
        OutputRefused: there is a file that is not from burn-import (unless ``force``).
        OSError: a file or directory cannot be written.
    """
    from burn.record import shard_names, write_record
    from burn.record.shards import written_files

    output = Path(output)
    checkpoint = opened(Path(source), top_level_key)
    dtypes = [_written(array.dtype, precision) for _, array in checkpoint.weights]
    how: dict[str, Any] = {"precision": precision, "shard_size": shard_size}
    files = written_files(output, shard_names(output, checkpoint.weights, **how))
    changed = not _is_same(files, output, checkpoint.weights, dtypes)
    if changed and not force:
        _check_ours(output)
    if changed and not dry_run:
        about = {"format": "pt", _WRITER: f"burn-import {VERSION}"}
        write_record(output, checkpoint.weights, about, **how)
    rows = _rows(checkpoint.weights, dtypes)
    size = sum(row.size for row in rows)
    about_source = (checkpoint.kind, rows, size, checkpoint.skipped)
    return Converted(files[0], changed, *about_source, tuple(files[1:]))


def _rows(weights: Weights, dtypes: Sequence[DType]) -> tuple[Row, ...]:
    pairs = zip(weights, dtypes, strict=True)
    return tuple(_row(name, array.shape, dtype) for (name, array), dtype in pairs)


def _row(name: str, shape: tuple[int, ...], dtype: DType) -> Row:
    from burn.dtypes import name_of

    return Row(name, name_of(dtype), shape, prod(shape) * dtype.itemsize)


def arrays_of(checkpoint: Checkpoint) -> Iterator[tuple[str, Array]]:
    """Yield the arrays by name, memory-mapped and unread."""
    from burn_import.frontends.checkpoints.store import parts

    for name, part in parts(checkpoint).items():
        yield name, part.array()


def opened(source: Path, top_level_key: str | None = None) -> Source:
    """Open a file of weights.

    Raises:
        UnreadableFile, UnsupportedModel, InvalidModel: as ``convert`` does.
    """
    from burn.record import RecordError, read_record
    from burn.record.formats import recognized
    from burn.record.shards import stored_at
    from burn_import.frontends.checkpoints import read
    from burn_import.frontends.checkpoints.store import parts
    from burn_ir import InvalidModel, UnreadableFile

    source = stored_at(source)
    kind = recognized(source) if source.is_file() else None
    if kind is None:
        checkpoint = read(source, top_level_key)
        weights = [(name, part.array()) for name, part in parts(checkpoint).items()]
        producer = checkpoint.producer or "an unknown writer"
        description = f"{checkpoint.format} file of {producer}"
        return Source(weights, description, checkpoint.skipped)
    if top_level_key is not None:
        raise InvalidModel("expected no top-level key for a record")
    try:
        record = read_record(source)
    except RecordError as error:
        raise UnreadableFile(str(error).removeprefix(f"{source}: ")) from error
    return Source(list(record.items()), f"{kind} record", {})


def _written(dtype: DType, precision: Precision | None) -> DType:
    from burn.record.precision import at_precision

    return dtype if precision is None else at_precision(dtype, precision)


def _record_at(path: Path) -> Record | ShardedRecord:
    """Return the record at ``path``, of any format, or its shards.

    Raises:
        RecordError: it is damaged.
    """
    from burn.record import read_record
    from burn.record.shards import is_index, open_shards, stored_at

    path = stored_at(path)
    return open_shards(path) if is_index(path) else read_record(path)


def _is_same(
    files: Sequence[Path], path: Path, weights: Weights, dtypes: Sequence[DType]
) -> bool:
    """Return whether the record at ``path`` has exactly these weights, in any order.

    It has to consist of ``files``.
    """
    from burn.record import RecordError, format_named, record_files
    from burn.record.formats import recognized
    from burn.record.precision import converted

    if not all(file.is_file() for file in files):
        return False
    try:
        record = _record_at(path)
        if record_files(path) != list(files):
            return False
        if len(files) == 1 and (recognized(path) or "safetensors") != format_named(
            path
        ):
            return False
        return set(record) == {name for name, _ in weights} and all(
            same_array(record[name], converted(array, dtype))
            for (name, array), dtype in zip(weights, dtypes, strict=True)
        )
    except RecordError:
        return False


def _check_ours(output: Path) -> None:
    from burn.record import RecordError
    from burn.record.shards import stored_at

    if not stored_at(output).exists():
        return
    try:
        metadata: Mapping[str, str] = _record_at(output).metadata
    except RecordError:
        metadata = {}
    if not metadata.get(_WRITER, "").startswith("burn-import "):
        raise OutputRefused(f"{output.name} was not written by burn-import")
