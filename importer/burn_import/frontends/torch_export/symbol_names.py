"""Names for the symbols in the shapes of a program's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn_import.frontends.torch_export.symbolic_extents import Symbols, symbols_in
from burn_import.provenance.axis_names import AXES

#: Bounds from the first number up count as none, those up to the second are PyTorch's
#: defaults.
_ENDLESS, _USUAL = 2**31 - 1, 2


def named_symbols(symbols: Symbols, inputs: Mapping[str, Sequence[Any]]) -> None:
    """Name every symbol (``s77``) after the first axis that has it.

    Axes that are a single symbol come before those that are expressions.
    """
    for alone in (True, False):
        for sizes in inputs.values():
            axes = AXES.get(len(sizes), ())
            for index, size in enumerate(sizes):
                name = axes[index] if index < len(axes) else f"extent{index}"
                for raw, whole in symbols_in(size):
                    if whole is alone:
                        symbols.call(raw, name if whole else f"{name}_unit")


def export_range_note(symbols: Symbols, ranges: Any) -> tuple[str, ...]:
    """Return a sentence about the ranges that the program was exported for, if any.

    ``ranges`` are the file's, by symbol; entries without two numbers are ignored.
    """
    bounds = []
    for raw, name in symbols.names.items():
        limits = ranges.get(raw) if isinstance(ranges, dict) else None
        low, high = (
            (
                limits.get(end)
                if isinstance(limits, dict) and type(limits.get(end)) is int
                else None
            )
            for end in ("min_val", "max_val")
        )
        # PyTorch's default range: dynamic extents are 2 or more, bounded by int64.
        if high is not None and high < _ENDLESS:
            bounds.append(f"{name} {low or 0} to {high}")
        elif low is not None and low > _USUAL:
            bounds.append(f"{name} {low} or more")
    return (f"Exported for {', '.join(bounds)}.",) if bounds else ()
