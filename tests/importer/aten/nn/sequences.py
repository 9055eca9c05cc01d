"""Sequences of different lengths, padded to one length."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.importer.aten.case import Case, case, f32


def beside(axis: int, value: float, is_left: bool = False) -> Any:
    """Return a function that pads sequences to one length and stacks them."""

    def run(*sequences: Any) -> Any:
        end = max(map(len, sequences))
        gaps = [end - len(x) for x in sequences]
        ends = [(gap, 0) if is_left else (0, gap) for gap in gaps]
        wide = [
            np.pad(x, [pair, (0, 0)], constant_values=value)
            for x, pair in zip(sequences, ends, strict=True)
        ]
        return np.stack(wide, axis)

    return run


CASES: tuple[Case, ...] = (
    case(
        "pad_sequence.default",
        beside(1, 0.0),
        sequences=[f32(3, 4), f32(5, 4), f32(1, 4)],
    ),
    case(
        "pad_sequence.default",
        beside(0, 0.5),
        label="varying",
        sequences=[f32("n", 4), f32(1, 4)],
        batch_first=True,
        padding_value=0.5,
    ),
    case(
        "pad_sequence.default",
        beside(1, 2.0, is_left=True),
        label="left",
        sequences=[f32(7, 4), f32("n", 4)],
        padding_value=2.0,
        padding_side="left",
    ),
)
