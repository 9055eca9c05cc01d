"""Means of gradients over processes, weighted by how many items each had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burn import ops
from burn.box import Box
from burn.distributed.communicator import Communicator
from burn.dtypes import DType, float32, float64
from burn.tensor import Tensor, from_numpy

Boxes = Mapping[str, Box]


def flatten(gradients: Mapping[str, Tensor], items: int) -> list[Tensor]:
    """``items`` times the gradients, and ``items`` itself, as one vector a dtype.

    Vectors are float32, or float64 for gradients of that dtype. Summed over processes
    they are what :func:`average` takes.
    """
    parts: dict[DType, list[Tensor]] = {}
    for gradient in gradients.values():
        dtype = _sum_dtype(gradient.dtype)
        flat = ops.reshape(ops.cast(gradient, dtype=dtype), (-1,))
        parts.setdefault(dtype, []).append(flat * float(items))
    return [
        ops.concat([*vectors, _count(vectors[0], items)], axis=0)
        for vectors in parts.values()
    ]


def _count(vector: Tensor, items: int) -> Tensor:
    return from_numpy(np.array([items], vector.dtype), vector.backend)


def average(sums: Sequence[Tensor], boxes: Boxes) -> dict[str, Tensor]:
    """The means of gradients by path, from sums of what :func:`flatten` returns.

    ``boxes`` are the parameters that gradients were flattened of, in the same order.
    """
    means, offsets = {}, dict[DType, int]()
    by_dtype = {vector.dtype: vector for vector in sums}
    for path, box in boxes.items():
        dtype = _sum_dtype(box.dtype)
        vector, start = by_dtype[dtype], offsets.get(dtype, 0)
        end = offsets[dtype] = start + int(np.prod(box.shape, dtype=np.int64))
        mean = ops.reshape(vector[start:end] / vector[-1], box.shape)
        means[path] = ops.cast(mean, dtype=box.dtype)
    return means


def _sum_dtype(dtype: DType) -> DType:
    return float64 if dtype == float64 else float32


def sum_vectors(communicator: Communicator, vectors: Sequence[Tensor]) -> list[Tensor]:
    """Each vector summed over all processes."""
    return [
        from_numpy(communicator.all_reduce(vector.numpy()), vector.backend)
        for vector in vectors
    ]


def share_weights(communicator: Communicator, boxes: Boxes) -> None:
    """Set parameters and buffers to those of rank 0."""
    for box in boxes.values():
        data = np.ascontiguousarray(box.numpy())
        raw = communicator.broadcast(data.reshape(-1).view(np.uint8))
        box.set(from_numpy(raw.view(data.dtype).reshape(data.shape)))


def count_items(arguments: Any) -> int:
    """The extent of the first axis of the first tensor in nested arguments.

    Raises:
        ValueError: there is no tensor with an axis.
    """
    for leaf in _leaves(arguments):
        if isinstance(leaf, Tensor) and leaf.ndim:
            return leaf.shape[0]
    raise ValueError(
        "expected a tensor with the items of the batch on its first axis, got none"
    )


def _leaves(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        yield value
        return
    for item in value:
        yield from _leaves(item)
