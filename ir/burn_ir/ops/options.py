"""Short forms of call arguments: no defaults, and one number for equal tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def non_default(**arguments: tuple[Any, Any]) -> dict[str, Any]:
    """Return the arguments ``name=(value, default)`` that differ from the default.

    Floats are compared in float32, as in files.
    """
    return {
        name: value
        for name, (value, default) in arguments.items()
        if not _equal(value, default)
    }


def _equal(value: Any, default: Any) -> bool:
    if isinstance(value, float) and isinstance(default, float):
        return bool(np.float32(value) == np.float32(default))
    return bool(value == default)


def non_default_operands(*operands: Any) -> tuple[Any, ...]:
    """Return ``operands`` without trailing Nones and zeros, the defaults."""
    present = list(operands)
    while present and (present[-1] is None or _is_zero(present[-1])):
        present.pop()
    return tuple(present)


def _is_zero(operand: Any) -> bool:
    return isinstance(operand, int) and operand == 0


def one(values: Sequence[Any]) -> Any:
    """Return the common value of all ``values``, else a tuple of them."""
    return values[0] if values and len(set(values)) == 1 else tuple(values)


def shortest(number: float) -> float:
    """Return the number with the fewest digits that rounds to ``number`` in float32.

    A file holds float32; its author wrote 0.1, not 0.10000000149.
    """
    return float(str(np.float32(number)))
