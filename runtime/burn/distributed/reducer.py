"""Reduction of gradients over processes, overlapped with the backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn.backend.base import Backend
from burn.distributed.communicator import Bucket, Communicator
from burn.distributed.gradients import (
    Boxes,
    average,
    flatten_group,
    layout_of,
    sum_vectors,
)
from burn.primitive import RECORDER, primitive
from burn.tensor import Tensor, innermost


@primitive(autocast="keep", no_gradient="it hands gradients to other processes")
def put_into_bucket(vector: Any, *, bucket: Bucket) -> Any:
    """Put a vector [N] into a bucket of a communicator; the result [1] is a dummy.

    Recordings run it without communicating: a process that records a plan would
    otherwise make more collective calls than the others.
    """
    return bucket.put(vector, is_final=RECORDER.get() is None)


class Reducer:
    """Mean gradients over the processes of ``communicator``.

    Gradients are summed in buckets of up to ``bucket_mb`` megabytes, which are filled
    from the last parameters to the first. If the communicator supports it on the
    device, the reduction of a bucket starts within the plan, after its last gradient.
    """

    def __init__(
        self, communicator: Communicator, device: Backend, bucket_mb: float
    ) -> None:
        if not bucket_mb > 0:
            raise ValueError(f"expected bucket_mb > 0, got {bucket_mb}")
        self.communicator, self._device = communicator, device
        self._limit = bucket_mb * 2**20
        self.is_overlapped = communicator.overlaps_on(device)
        # CUDA graphs write into the buckets of their recording.
        self._buckets: dict[tuple[tuple[str, ...], ...], list[Bucket]] = {}
        self._current: list[Bucket] = []

    def collector(self, boxes: Boxes, items: int) -> Collector:
        """Return a collector of the gradients of ``boxes`` in a step of ``items``."""
        layout = layout_of(boxes, self._limit)
        buckets = self._buckets_of(boxes) if self.is_overlapped else None
        return Collector(boxes, layout, items, buckets)

    def begin(self, boxes: Boxes) -> None:
        """Prepare for the gradients of ``boxes``, which the next plan computes."""
        if self.is_overlapped:
            self._current = self._buckets_of(boxes)
            for bucket in self._current:
                bucket.begin()

    def sums(self, vectors: Sequence[Tensor]) -> list[Tensor]:
        """Return the sums over all processes of the collected vectors."""
        if not self.is_overlapped:
            return sum_vectors(self.communicator, vectors)
        for bucket in self._current:
            bucket.start()
        arrays = [bucket.sum() for bucket in self._current]
        to_tensor = self.communicator.to_tensor
        return [to_tensor(array, self._device) for array in arrays]

    def average(self, sums: Sequence[Tensor], boxes: Boxes) -> dict[str, Tensor]:
        """Return the mean gradients of ``boxes`` by path."""
        return average(sums, boxes, layout_of(boxes, self._limit))

    def _buckets_of(self, boxes: Boxes) -> list[Bucket]:
        layout = tuple(map(tuple, layout_of(boxes, self._limit)))
        if layout not in self._buckets:
            self._buckets[layout] = [self.communicator.bucket() for _ in layout]
        return self._buckets[layout]


class Collector:
    """Collects gradients in the order in which they are computed."""

    def __init__(
        self,
        boxes: Boxes,
        layout: list[list[str]],
        items: int,
        buckets: list[Bucket] | None,
    ) -> None:
        self._paths: dict[Any, str] = {box: path for path, box in boxes.items()}
        self._layout, self._items, self._buckets = layout, items, buckets
        self._group = {p: number for number, ps in enumerate(layout) for p in ps}
        self._gradients: list[dict[str, Tensor]] = [{} for _ in layout]
        self._vectors: dict[int, Tensor] = {}

    def add(self, key: Any, gradient: Tensor) -> None:
        """Add the gradient of a parameter if the collector expects it."""
        if key in self._paths:
            self._add(self._paths[key], gradient)

    def finish(self, gradients: Mapping[str, Tensor]) -> list[Tensor]:
        """Add the remaining gradients by path; return the vectors for the reducer.

        Raises:
            ValueError: a parameter has no gradient.
        """
        unused = sorted(self._group.keys() - gradients.keys())
        if unused:
            raise ValueError(
                f"the loss does not depend on the parameters {unused}; with a "
                "communicator, freeze them"
            )
        for path in self._group:
            if path not in self._gradients[self._group[path]]:
                self._add(path, gradients[path])
        return [self._vectors[number] for number in range(len(self._layout))]

    def _add(self, path: str, gradient: Tensor) -> None:
        number = self._group[path]
        paths, group = self._layout[number], self._gradients[number]
        group[path] = innermost(gradient)
        if len(group) < len(paths):
            return
        vector = flatten_group([group[path] for path in paths], self._items)
        if self._buckets is not None:
            vector = put_into_bucket(vector, bucket=self._buckets[number])
        self._vectors[number] = vector
