"""Random programs, by seed."""

from __future__ import annotations

import os
from functools import partial

from tests.wild.entry import Case, Entry


def list_entries() -> list[Entry]:
    """Return an entry for each seed of ``WILD_SEEDS``, which is ``FIRST:LAST``."""
    first, last = map(int, os.environ.get("WILD_SEEDS", "0:100").split(":"))
    return [
        Entry("random", "random", str(seed), partial(_build, seed))
        for seed in range(first, last)
    ]


def _build(seed: int) -> Case:
    from tests.wild.programs.writer import build_program

    return build_program(seed)[1]
