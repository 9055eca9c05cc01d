"""The suite's own comparison: structure, dtype, shape, values within a tolerance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn import dtypes

#: Two units in the last place, as the suite has it for results of this type.
BFLOAT16 = 2**-6


def assert_similar(
    got: Sequence[Any], expected: Sequence[Any], tolerance: tuple[float, float]
) -> None:
    """Fail unless the results of a model are those expected of it.

    A sequence is a list, an absent optional is None, a map is a dict.
    """
    assert len(got) == len(expected)
    for index, (y, z) in enumerate(zip(got, expected, strict=True)):
        _assert_value(y, z, tolerance, f"output {index}")


def _assert_value(
    got: Any, expected: Any, tolerance: tuple[float, float], path: str
) -> None:
    if expected is None:
        assert got is None, path
    elif isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected), path
        for index, (y, z) in enumerate(zip(got, expected, strict=True)):
            _assert_value(y, z, tolerance, f"{path}[{index}]")
    elif isinstance(expected, dict):
        assert isinstance(got, dict) and got.keys() == expected.keys(), path
        for key, z in expected.items():
            _assert_value(got[key], z, tolerance, f"{path}[{key!r}]")
    else:
        _assert_array(got, expected, tolerance, path)


def _assert_array(
    got: Any, expected: Any, tolerance: tuple[float, float], path: str
) -> None:
    assert isinstance(got, np.ndarray), f"{path} is a {type(got).__name__}"
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), path
    rtol, atol = tolerance
    if dtypes.is_float(got.dtype) and got.dtype.itemsize < 4:  # NumPy may not know it
        if got.dtype == dtypes.bfloat16:
            rtol = max(rtol, BFLOAT16)
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    if got.dtype.kind in "fc":
        np.testing.assert_allclose(got, expected, rtol, atol, err_msg=path)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=path)
