"""Research programs written for this suite, in plain PyTorch."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from tests.wild.entry import Case, Entry

FAMILIES = (
    *("graphs", "sequences", "mixers", "vision", "density", "sets", "structures"),
    *("layers", "decoders", "applied", "recognition", "restoration", "signals"),
    *("forecasts", "estimators", "recurrent"),
)


def list_entries() -> list[Entry]:
    """Return an entry for each program in ``tests/wild/research``."""
    entries = []
    for family in FAMILIES:
        module: Any = import_module(f"tests.wild.research.{family}")
        for name, build in module.PROGRAMS.items():
            entries.append(Entry("research", family, name, partial(_build, build)))
    return entries


def _build(build: Any) -> Case:
    module, inputs, larger = build()
    return Case(module, inputs, larger)
