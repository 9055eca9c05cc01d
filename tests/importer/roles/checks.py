"""What is asked of an imported model's state, given that of the author's module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from burn import nn

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class State:
    """The arrays of a module by key, and which of them are parameters."""

    arrays: Mapping[str, Array]
    parameters: frozenset[str]


def state_of(module: nn.Module) -> State:
    """Return the state of one of our modules, with buffers that are not persistent."""
    boxes = dict(module.boxes())
    arrays = {key: box.numpy() for key, box in boxes.items()}
    trained = (key for key, box in boxes.items() if isinstance(box, nn.Parameter))
    return State(arrays, frozenset(trained))


def wrong_keys(ours: State, author: State) -> list[str]:
    """Return what is wrong with the keys that both have: values, shapes, kinds."""
    results = []
    for key, array in ours.arrays.items():
        if key not in author.arrays:
            continue
        expected = author.arrays[key]
        if array.shape != expected.shape or array.tobytes() != expected.tobytes():
            results.append(f"{key} is another array than the author's")
        if (key in ours.parameters) != (key in author.parameters):
            results.append(f"{key} is of another kind than the author's")
    return results
