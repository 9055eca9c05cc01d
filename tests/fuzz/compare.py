"""Comparing results with those of an oracle, as exactly as the graph allows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.generator.trial import scale_of

#: The error relative to the largest element that rounding may cause, by dtype.
ROUNDING = {
    np.dtype(np.float16): 4e-3,
    np.dtype(np.float32): 2e-5,
    np.dtype(np.float64): 1e-9,
    np.dtype(np.complex64): 2e-5,
    np.dtype(np.complex128): 1e-9,
}
SMALLEST = 1e-6


def difference(
    got: Sequence[Any], expected: Sequence[Any], noise: Sequence[float]
) -> str | None:
    """Return the difference of the first output that differs, else None.

    Dtypes, shapes, and values that are not floating have to be equal. Floating values
    may differ by rounding and by ``noise``, which is given for each output.
    """
    if len(got) != len(expected):
        return f"expected {len(expected)} outputs, got {len(got)}"
    for index, (y, z, slack) in enumerate(zip(got, expected, noise, strict=True)):
        result = _value(y, z, slack)
        if result is not None:
            return f"output {index}: {result}"
    return None


def _value(got: Any, expected: Any, slack: float) -> str | None:
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return f"expected a sequence of {len(expected)}, got {_brief(got)}"
        results = [_value(y, z, slack) for y, z in zip(got, expected, strict=True)]
        return next((text for text in results if text), None)
    if not isinstance(got, np.ndarray):
        return f"expected an array, got {type(got).__name__}"
    if got.dtype.kind in "OUST" and expected.dtype.kind in "OUST":
        got, expected = got.astype(object), expected.astype(object)
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"expected {_brief(expected)}, got {_brief(got)}"
    return _array(got, expected, slack)


def _array(got: Any, expected: Any, slack: float) -> str | None:
    if expected.dtype not in ROUNDING:
        wrong = np.asarray(got != expected)
    else:
        allowed = ROUNDING[expected.dtype] * scale_of(expected) + SMALLEST + slack
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        close = np.isclose(
            got.astype(wide), expected.astype(wide), 0, allowed, equal_nan=True
        )
        wrong = ~close
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    return (
        f"{int(wrong.sum())} of {wrong.size} elements of {_brief(expected)} differ, "
        f"first at {index}: expected {expected[index]!r}, got {got[index]!r}"
    )


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, list) else "?"
