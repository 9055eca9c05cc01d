"""Names for the symbols in the shapes of a program's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn_import.exported.symbols import Symbols, symbols_in

#: What the axes of an input are called when their extents vary, by its rank.
AXES: Mapping[int, Sequence[str]] = {
    1: ("length",),
    2: ("batch", "length"),
    3: ("batch", "length", "length"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}


def named_symbols(symbols: Symbols, inputs: Mapping[str, Sequence[Any]]) -> None:
    """Name every symbol after the first axis that has it: the program has ``s77``.

    An axis that is a symbol alone comes before those that are computed from it.
    """
    for alone in (True, False):
        for sizes in inputs.values():
            axes = AXES.get(len(sizes), ())
            for place, size in enumerate(sizes):
                name = axes[place] if place < len(axes) else f"extent{place}"
                for raw, whole in symbols_in(size):
                    if whole is alone:
                        symbols.call(raw, name if whole else f"{name}_unit")
