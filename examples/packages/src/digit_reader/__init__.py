"""Reads a handwritten digit, with a network that is imported when this is built."""

import numpy as np
from numpy.typing import NDArray

import burn
from digit_reader.net import Net

_MODEL = burn.compile(Net.load())


def read_digit(image: NDArray[np.float32]) -> int:
    """Return the digit in an image, float32[8, 8] with ink of 1."""
    logits = _MODEL(burn.tensor(image[None, None]))
    return int(logits.numpy().argmax())
