"""Batches of a loader as arguments of a step."""

from typing import Any

import numpy as np

from burn.backend.arrays import foreign_library
from burn.plan.pytree import mapped
from burn.tensor import Tensor, from_numpy


def arguments_of(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of the step, with tensors instead of arrays.

    Arrays of other libraries in the memory of the CPU, as those of PyTorch's
    ``DataLoader``, are taken over without a copy.
    """

    def tensor(leaf: Any) -> Any:
        if foreign_library(leaf) is not None:
            leaf = np.from_dlpack(leaf)
        return from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf

    batch = mapped(tensor, batch)
    if isinstance(batch, dict):
        return (), batch
    return (tuple(batch) if isinstance(batch, list | tuple) else (batch,)), {}


def sample_count(arguments: Any, position: tuple[str, int, int]) -> int:
    """Return the length of the first tensor that has axes; 1 if there is none.

    Raises:
        ValueError: it is 0; the message has the split, epoch and number of the batch.
    """
    sizes: list[int] = []

    def observe(leaf: Any) -> Any:
        if isinstance(leaf, Tensor) and leaf.ndim:
            sizes.append(leaf.shape[0])
        return leaf

    mapped(observe, arguments)
    size = sizes[0] if sizes else 1
    if size == 0:
        split, epoch, number = position
        raise ValueError(
            f"expected at least one sample in a batch, got none in batch {number} "
            f"of epoch {epoch} ({split})"
        )
    return size
