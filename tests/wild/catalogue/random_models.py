"""Random programs, by seed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tests.wild.entry import Case, Entry


def list_entries(seeds: Iterable[int] = range(100)) -> list[Entry]:
    """Return an entry for each seed."""
    return [Entry("random", "random", str(n), partial(_build, n)) for n in seeds]


def _build(seed: int) -> Case:
    from tests.wild.programs.writer import build_program

    return build_program(seed)[1]
