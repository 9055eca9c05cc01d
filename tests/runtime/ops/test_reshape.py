"""Reshapes, and what -1 is in a shape of no elements."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops


@pytest.mark.parametrize(
    ("extents", "shape", "expected"),
    [
        ((0, 5, 24), (0, -1, 4, 6), (0, 5, 4, 6)),
        ((2, 0, 24), (2, 0, -1), (2, 0, 24)),
        ((2, 0, 24), (-1, 0, 4, 6), (2, 0, 4, 6)),
        ((3, 5, 24), (3, -1, 4, 6), (3, 5, 4, 6)),
        ((0, 4), (-1, 2, 2), (0, 2, 2)),
        ((0, 5, 24), (0, -1), (0, 120)),
        ((0, 5, 24), (0, -1, 4, 5), (0, 6, 4, 5)),
    ],
)
def test_an_extent_that_is_kept(extents: Any, shape: Any, expected: Any) -> None:
    array = np.ones(extents, np.float32)
    run = burn.compile(lambda x: ops.reshape(x, shape))
    for _ in range(3):
        assert run(burn.from_numpy(array)).shape == expected
    x = burn.from_numpy(array, Autodiff(Cpu())).require_grad()
    y = ops.reshape(x, shape)
    assert y.shape == expected
    gradients = (y * 2).sum().backward()
    assert gradients[x].shape == extents


def test_a_list() -> None:
    x: Any = [1.0, 2.0, 3.0]
    assert ops.reshape(x, (-1, 1)).shape == (3, 1)


@pytest.mark.parametrize("shape", [(0, -1, 7), (-1, 0), (-1, 0, 4)])
def test_an_extent_that_nothing_says(shape: Any) -> None:
    with pytest.raises(ValueError, match="reshape"):
        ops.reshape(burn.from_numpy(np.zeros((0, 5, 24), np.float32)), shape)


def test_a_scalar_is_flattened_to_one_element() -> None:
    x = burn.tensor(3.0)
    assert ops.flatten(x).shape == burn.compile(ops.flatten)(x).shape == (1,)
    for condition, expected in (([True], [3.0]), ([False], [])):
        kept = ops.compress(x, burn.tensor(condition))
        np.testing.assert_array_equal(kept.numpy(), np.array(expected, np.float32))
    with pytest.raises(ValueError, match="expected distinct axes in"):
        ops.flatten(x, 1)
