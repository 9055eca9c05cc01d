"""Architectures as entries of a catalogue, and cases built from them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: File formats, in the order of the columns of the coverage table.
FORMATS = ("onnx-dynamo", "onnx-torchscript", "pt2", "torchscript")


@dataclass(frozen=True)
class Case:
    """A model with example inputs.

    ``module`` takes the tensors of ``inputs`` as positional arguments. ``larger`` are
    inputs of another size, or None; the axes on which they differ are exported as
    dynamic.
    """

    module: Any
    inputs: tuple[Any, ...]
    larger: tuple[Any, ...] | None = None

    def dynamic_axes(self) -> list[list[int]]:
        """Return, for each input, the axes whose extents differ in ``larger``."""
        if self.larger is None:
            return [[] for _ in self.inputs]
        pairs = zip(self.inputs, self.larger, strict=True)
        return [
            [k for k, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n]
            for a, b in pairs
        ]


@dataclass(frozen=True)
class Entry:
    """One architecture: its library, and the function that builds its case.

    ``family`` is the row of the coverage table that the architecture counts in.
    """

    library: str
    family: str
    name: str
    build: Callable[[], Case]

    @property
    def key(self) -> str:
        """The name of the architecture in results, unique over all libraries."""
        return f"{self.library}/{self.name}"


@dataclass(frozen=True)
class Task:
    """One file to export and import: an entry in one format."""

    entry: Entry
    format: str

    @property
    def key(self) -> str:
        """The key of the row in a file of results."""
        return f"{self.entry.key}:{self.format}"


def stable_hash(text: str) -> int:
    """Return a number that depends on ``text`` alone, equal in every process."""
    return zlib.crc32(text.encode())


def ordered_tasks(entries: Sequence[Entry], formats: Sequence[str]) -> list[Task]:
    """Return all tasks, every architecture once before any comes a second time.

    The format in which an architecture comes first changes from one to the next, and
    architectures of all libraries alternate, so every prefix is a fair sample. The
    order depends on names alone: an interrupted run continues where it stopped.
    """
    rounds: list[list[Task]] = [[] for _ in formats]
    for entry in sorted(entries, key=lambda e: (stable_hash(e.key), e.key)):
        first = stable_hash(f"format of {entry.key}")
        for number, tasks in enumerate(rounds):
            tasks.append(Task(entry, formats[(first + number) % len(formats)]))
    return [task for tasks in rounds for task in tasks]
