"""The models that are measured, and processes that measure them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import environ
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
SOURCES = ("importer", "ir", "templates", "runtime")
IMPORT = "from burn_import.cli import main; main()"

Feeds = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Case:
    """A model's file, and what it is called in a table."""

    name: str
    path: Path


def cases(folders: Iterable[str], only: str = "") -> list[Case]:
    """The models whose name contains ``only``.

    They are those of this repository, those in the onnx package (``light_...``:
    famous networks whose weights are constants, written by a generator) and every
    ``.onnx`` file below ``folders``.
    """
    import onnx

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    roots = [ROOT / "models", light, *map(Path, folders)]
    paths = [path for root in roots for path in sorted(root.rglob("*.onnx"))]
    stems = [path.stem for path in paths]
    named = [
        Case(f"{p.parent.name}/{p.stem}" if stems.count(p.stem) > 1 else p.stem, p)
        for p in paths
    ]
    return [case for case in named if only in case.name]


class Children:
    """Runs Python in processes that keep their bytecode in one folder."""

    def __init__(self, folder: Path) -> None:
        paths = [str(ROOT / name) for name in SOURCES]
        self.environment = {**environ, "PYTHONPATH": ":".join(paths)}
        # Without its bytecode a child would measure Python's own compiler.
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.prefix = f"pycache_prefix={folder / 'bytecode'}"

    def start(self, code: str, *arguments: str) -> subprocess.Popen[str]:
        """A process that runs ``code``."""
        return subprocess.Popen(
            [sys.executable, "-X", self.prefix, "-c", code, *arguments],
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def printed(self, code: str, *arguments: str) -> str:
        """Return the output of a process that runs ``code``.

        Raises:
            RuntimeError: it fails.
        """
        process = self.start(code, *arguments)
        output, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{arguments} failed: {output}{errors}")
        return output

    def seconds(self, code: str, *arguments: str) -> float:
        """The time that a process takes for ``code``, from its start to its end.

        Raises:
            RuntimeError: it fails.
        """
        start = perf_counter()
        self.printed(code, *arguments)
        return perf_counter() - start


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table, each row when it is there: the first column is text."""
    print(f"| {' | '.join(head)} |")
    print(f"|---|{'--:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
