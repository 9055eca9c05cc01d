"""Stored arrays that are recognized as rotary frequencies by their contents."""

import numpy as np
import pytest

from burn_import.provenance.trainable import contents


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_parts_of_one_another_are_angles(base: float) -> None:
    angles = (base ** -(np.arange(0, 16, 2) / 16)).astype(np.float32)
    assert contents(angles) == "inv_freq"
    assert contents(angles[1:]) == "slopes"


def test_a_zero_between_positive_numbers_is_none() -> None:
    assert contents(np.array([0.5, 0.0, 0.125, 0.25], np.float32)) == ""
    assert contents(np.array([1.0, -0.5, 0.25], np.float32)) == ""


@pytest.mark.parametrize("pair", [[0.5, 0.3], [1.0, 0.5], [0.02, 0.01]])
def test_two_numbers_are_weights(pair: list[float]) -> None:
    """Any two numbers are a geometric progression; a trained scale is no frequency."""
    assert contents(np.array(pair, np.float32)) == ""


def test_two_frequencies_and_two_slopes() -> None:
    assert contents(np.array([1.0, 0.01], np.float32)) == "inv_freq"
    assert contents(np.array([0.0625, 0.00390625], np.float32)) == "slopes"
