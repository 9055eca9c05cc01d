"""Boxes where Python asks for a number."""

import numpy as np
import pytest

import burn
from burn.box import Buffer, Parameter


@pytest.mark.parametrize("kind", [Buffer, Parameter])
def test_a_box_is_as_true_as_what_it_holds(kind: type[Buffer]) -> None:
    assert kind(burn.tensor(np.array([True])))
    assert not kind(burn.tensor(np.array(False)))
    with pytest.raises(ValueError):
        bool(kind(burn.tensor(np.zeros(2))))


def test_a_box_is_the_number_it_holds() -> None:
    box = Buffer(burn.tensor(np.array(3)))
    assert (int(box), float(box), list(range(5))[box]) == (3, 3.0, 3)
