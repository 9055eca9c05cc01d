"""Differences between the result of an import and the files on disk."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from burn_import.embedding import embedded_record, without_record

if TYPE_CHECKING:
    from burn_ir.types import Array


@dataclass(frozen=True)
class Weight:
    """An array of a record that would change.

    ``before`` and ``after`` are its types, such as ``float32[3, 4]``; empty where
    the array does not exist. They are equal if only values differ.
    """

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Changes:
    """The module's changes as a unified diff, and the changed weights."""

    lines: tuple[str, ...]
    weights: tuple[Weight, ...]


def changes(module: Path, text: str, weights: Sequence[tuple[str, Array]]) -> Changes:
    """Return the changes that writing ``text`` and ``weights`` would make."""
    old = module.read_text("utf-8", "replace") if module.is_file() else ""
    names = (f"{module.as_posix()}" if old else "/dev/null", module.as_posix())
    lines = difflib.unified_diff(
        without_record(old).splitlines(),
        without_record(text).splitlines(),
        *names,
        lineterm="",
    )
    return Changes(tuple(lines), tuple(_changed(module, weights)))


def _changed(module: Path, weights: Sequence[tuple[str, Array]]) -> list[Weight]:
    from burn_import.fingerprint import same_array

    old = _weights_of(module)
    new = dict(weights)
    changed = [
        Weight(name, _type(old.get(name)), _type(new.get(name)))
        for name in [*new, *(name for name in old if name not in new)]
        if name not in old or name not in new or not same_array(old[name], new[name])
    ]
    return sorted(changed, key=lambda weight: weight.name)


def _weights_of(module: Path) -> dict[str, Array]:
    """Return the weights of a written module; none if its record is damaged."""
    from burn.record import RecordError, open_stored, record_of_bytes
    from burn.record.shards import stored_at

    record = module.with_suffix(".safetensors")
    try:
        embedded = embedded_record(module)
        if embedded is not None:
            return dict(record_of_bytes(embedded))
        return dict(open_stored(record)) if stored_at(record).is_file() else {}
    except (RecordError, ValueError):
        return {}


def _type(array: Array | None) -> str:
    from burn.dtypes import name_of

    if array is None:
        return ""
    return f"{name_of(array.dtype)}[{', '.join(map(str, array.shape))}]"
