"""Reshapes of tensors without elements."""

from typing import Any

import numpy as np
import pytest

import burn


def swap_extents(x: Any) -> Any:
    return x.reshape(-1, x.shape[0])


def test_an_extent_that_no_element_determines_is_refused() -> None:
    x = burn.tensor(np.zeros((0, 4), np.float32))
    message = r"determines -1, got \[-1, 0\] .* \[0, 4\]: is the batch empty\?"
    for function in (swap_extents, burn.compile(swap_extents)):
        with pytest.raises(ValueError, match=message):
            function(x)
    assert x.reshape(-1, 2).shape == (0, 2)


@pytest.mark.parametrize(
    ("extents", "shape", "expected"),
    [
        ((0, 4), (0, -1, 2), (0, 2, 2)),
        ((0, 5, 96), (0, 5, -1, 3, 8), (0, 5, 4, 3, 8)),
        ((0, 64, 8), (0, -1, 16), (0, 32, 16)),
        ((3, 0, 8), (3, -1, 2), (3, 0, 2)),
        ((2, 5, 0), (2, -1, 0), (2, 5, 0)),
    ],
)
def test_kept_extents_determine_others(
    extents: tuple[int, ...], shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    x = burn.tensor(np.zeros(extents, np.float32))

    def reshaped(x: Any) -> Any:
        return x.reshape(*shape)

    assert reshaped(x).shape == burn.compile(reshaped)(x).shape == expected
