"""Which stored arrays are told by their contents to be the angles of an embedding."""

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
