"""Files of weights to records, without the program that uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from burn_import.output import OutputRefused, same_record
from burn_import.version import VERSION

if TYPE_CHECKING:
    from burn_import.pytorch import Checkpoint, Quantization
    from burn_ir.types import Array

_WRITER = "importer"


@dataclass(frozen=True)
class Row:
    """One tensor of a record."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Converted:
    """A record, whether its content was another before, and what is in it.

    ``size`` is in bytes. ``skipped`` names what the file holds beside tensors, with the
    reason.
    """

    record: Path
    changed: bool
    source: str
    rows: tuple[Row, ...]
    size: int
    skipped: Mapping[str, str]


def convert(
    source: str | Path,
    output: str | Path,
    top_level_key: str | None = None,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Converted:
    """The record at ``output`` of all tensors in ``source``.

    They keep names, dtypes and shapes. A quantised tensor is written as its integers,
    with ``.scale`` and ``.zero_point`` beside it. The record is written as a stream,
    and takes the place of the old one when it is whole.

    Raises:
        UnreadableFile, UnsupportedModel, InvalidModel: as
            :func:`burn_import.pytorch.read` does.
        RecordError: a record cannot hold a tensor's name or dtype (complex128).
        OutputRefused: there is a file that is not from burn-import (unless ``force``).
        OSError: the disk or the directory does not allow it.
    """
    from burn.dtypes import name_of
    from burn.record import write_record
    from burn_import.pytorch import read

    output = Path(output)
    checkpoint = read(source, top_level_key)
    weights = list(arrays_of(checkpoint))
    changed = not same_record(output, weights)
    if changed and not force:
        _check_ours(output)
    if changed and not dry_run:
        about = {"format": "pt", _WRITER: f"burn-import {VERSION}"}
        write_record(output, weights, about)
    rows = tuple(
        Row(name, name_of(array.dtype), array.shape) for name, array in weights
    )
    size = sum(array.nbytes for _, array in weights)
    kind = f"{checkpoint.format} file of {checkpoint.producer or 'an unknown writer'}"
    return Converted(output, changed, kind, rows, size, checkpoint.skipped)


def arrays_of(checkpoint: Checkpoint) -> Iterator[tuple[str, Array]]:
    """The arrays by name, mapped and not read."""
    for name, tensor in checkpoint.items():
        yield name, tensor.array()
        if tensor.quantization is not None:
            yield from _scaling(name, tensor.quantization)


def _scaling(name: str, scaling: Quantization) -> Iterator[tuple[str, Array]]:
    import numpy as np

    for part in ("scale", "zero_point"):
        value = getattr(scaling, part)
        is_number = isinstance(value, int | float)
        yield f"{name}.{part}", np.asarray(value) if is_number else value.array()


def _check_ours(output: Path) -> None:
    from burn.record import RecordError, open_record

    if not output.exists():
        return
    try:
        writer = open_record(output).metadata.get(_WRITER, "")
    except RecordError:
        writer = ""
    if not writer.startswith("burn-import "):
        raise OutputRefused(f"{output.name} was not written by burn-import")
