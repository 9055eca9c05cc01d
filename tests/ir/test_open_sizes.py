"""The dimension that a reshape to numbers leaves open as -1."""

from collections.abc import Sequence

import pytest

from burn_ir.dim import Dim, symbol
from burn_ir.ops.reshapes import with_open_size

BATCH = symbol("batch")


@pytest.mark.parametrize(
    ("extents", "target", "expected"),
    [
        ((BATCH, 17, 32), (BATCH, 17, 4, 8), [BATCH, -1, 4, 8]),
        ((1, 16, 32), (1, 16, 4, 8), [1, -1, 4, 8]),
        ((2, BATCH, 32), (2, BATCH, 4, 8), [-1, BATCH, 4, 8]),
        ((24, 1, 32), (24, 1, 4, 8), [24, -1, 4, 8]),
        ((BATCH, BATCH, 32), (BATCH, BATCH, 4, 8), [BATCH, BATCH, 4, 8]),
        ((1, BATCH, 32), (1, BATCH, 4, 8), [1, BATCH, 4, 8]),
        ((6, 4, 8), (24, 8, 1), [-1, 8, 1]),
        ((BATCH, 6, 4, 8), (BATCH, 24, 8), [BATCH, -1, 8]),
        ((BATCH, 6, 4), (BATCH, 24), [BATCH, 24]),
        ((BATCH, 17, 32), (BATCH, 17, 4, -1), [BATCH, 17, 4, -1]),
        ((64 * BATCH, 49, 288), (64 * BATCH, 49, 3, 96), [-1, 49, 3, 96]),
        ((BATCH, 8, 7, 32), (8 * BATCH, 7, 32), [-1, 7, 32]),
        ((0, 17, 32), (0, 17, 4, 8), [0, 17, 4, 8]),
        ((1, 1, 8, 16), (1, 8, 2, 8), [1, -1, 2, 8]),
        ((1, 2, 7, 8), (2, 7, 8), [2, -1, 8]),
        ((257,), (1, 1, 257), [1, 1, -1]),
        ((BATCH, 8, 8, 4), (BATCH, 1, 8, 1, 8, 4), [BATCH, 1, 8, 1, 8, 4]),
        ((1, 256, 16), (1, 16, 16, 16), [-1, 16, 16, 16]),
        ((17, 32), (17, 32), [17, 32]),
    ],
)
def test_a_number_that_is_kept_or_joins_axes_is_open(
    extents: Sequence[Dim], target: Sequence[Dim], expected: Sequence[Dim]
) -> None:
    assert with_open_size(target, extents) == expected
