"""Means of gradients over processes, weighted by the number of items of each."""

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
#: The paths of parameters whose gradients are summed together, for each sum.
Layout = list[list[str]]


def layout_of(values: Mapping[str, Any], limit: float = float("inf")) -> Layout:
    """Return groups of the paths of ``values`` with up to ``limit`` bytes each.

    The last parameters come first because their gradients are computed first. The
    elements of a group are summed in the same dtype. A parameter larger than ``limit``
    has its own group.
    """
    layout: Layout = []
    filled: dict[DType, int] = {}  # bytes in the last group of each dtype
    last: dict[DType, list[str]] = {}
    for path in reversed(list(values)):
        value = values[path]
        dtype = sum_dtype(value.dtype)
        size = int(np.prod(value.shape, dtype=np.int64)) * dtype.itemsize
        if dtype not in last or filled[dtype] + size > limit:
            last[dtype], filled[dtype] = [], 0
            layout.append(last[dtype])
        last[dtype].append(path)
        filled[dtype] += size
    return layout


def flatten(gradients: Mapping[str, Tensor], items: int) -> list[Tensor]:
    """Return ``items`` times the gradients, and ``items``, as one vector per dtype.

    Vectors are float32, or float64 for gradients of that dtype. Their sums over all
    processes are the input of :func:`average`.
    """
    return [
        flatten_group([gradients[path] for path in paths], items)
        for paths in layout_of(gradients)
    ]


def flatten_group(gradients: Sequence[Tensor], items: int) -> Tensor:
    """Return ``items`` times one group's gradients, and ``items``, as one vector."""
    dtype = sum_dtype(gradients[0].dtype)
    vectors = [
        ops.reshape(ops.cast(gradient, dtype=dtype), (-1,)) for gradient in gradients
    ]
    flat = ops.concat(vectors, axis=0) if len(vectors) > 1 else vectors[0]
    count = from_numpy(np.array([items], dtype), flat.backend)
    return ops.concat([flat * float(items), count], axis=0)


def average(
    sums: Sequence[Tensor], boxes: Boxes, layout: Layout | None = None
) -> dict[str, Tensor]:
    """Return the mean gradients by path, from sums of the results of :func:`flatten`.

    ``boxes`` are the parameters of the gradients, in the same order.
    """
    means: dict[str, Tensor] = {}
    for vector, paths in zip(sums, layout or layout_of(boxes), strict=True):
        start = 0
        for path in paths:
            box = boxes[path]
            end = start + int(np.prod(box.shape, dtype=np.int64))
            mean = ops.reshape(vector[start:end] / vector[-1], box.shape)
            means[path], start = ops.cast(mean, dtype=box.dtype), end
    return {path: means[path] for path in boxes}


def sum_dtype(dtype: DType) -> DType:
    """Return the dtype in which gradients of ``dtype`` are summed."""
    return float64 if dtype == float64 else float32


def sum_vectors(communicator: Communicator, vectors: Sequence[Tensor]) -> list[Tensor]:
    """Return each vector summed over all processes."""
    return [
        communicator.to_tensor(
            communicator.all_reduce(communicator.to_array(vector)), vector.backend
        )
        for vector in vectors
    ]


def share_weights(communicator: Communicator, boxes: Boxes) -> None:
    """Set parameters and buffers to the values of rank 0."""
    for box in boxes.values():
        data = np.ascontiguousarray(box.numpy())
        raw = communicator.broadcast(data.reshape(-1).view(np.uint8))
        box.set(from_numpy(raw.view(data.dtype).reshape(data.shape)))


def count_items(arguments: Any) -> int:
    """Return the extent of the first axis of the first tensor in nested arguments.

    Raises:
        ValueError: no tensor has an axis.
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
