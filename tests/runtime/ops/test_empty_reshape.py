"""Reshapes of tensors without elements."""

from typing import Any

import numpy as np
import pytest

import burn


def split_rows(x: Any) -> Any:
    return x.reshape(x.shape[0], -1, 2)


def test_an_extent_that_no_element_determines_is_refused() -> None:
    x = burn.tensor(np.zeros((0, 4), np.float32))
    message = r"determines -1, got \[0, -1, 2\] .* \[0, 4\]: is the batch empty\?"
    for function in (split_rows, burn.compile(split_rows)):
        with pytest.raises(ValueError, match=message):
            function(x)
    assert x.reshape(-1, 2).shape == (0, 2)
