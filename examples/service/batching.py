"""Requests of many callers, computed in batches."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_BATCH, LONGEST_WAIT, LONGEST_QUEUE = 32, 0.002, 1000

Array = NDArray[np.float32]
Waiting = tuple[Array, asyncio.Future[Any]]


class Batcher:
    """Collects what callers ask for within 2 ms, and computes it at once.

    A thread computes while the event loop collects the next batch. Batches are padded
    to powers of two, so that there are few plans.
    """

    def __init__(self, model: Callable[[Array], Array]) -> None:
        self.model = model
        self.queue: asyncio.Queue[Waiting] = asyncio.Queue(LONGEST_QUEUE)

    async def __call__(self, image: Array) -> tuple[Array, int]:
        """Return the row of results for an image, and the size of its batch.

        Raises:
            asyncio.QueueFull: too many callers wait already.
        """
        answer = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((image, answer))
        row, count = await answer
        return row, count

    async def run(self) -> None:
        """Compute batches until the task is canceled."""
        while True:
            waiting = await self._collect()
            images = np.stack([image for image, _ in waiting])
            size = 1 << (len(images) - 1).bit_length()
            padded = np.pad(images, [(0, size - len(images)), *[(0, 0)] * 3])
            call = asyncio.to_thread(self.model, padded)
            results = await asyncio.gather(call, return_exceptions=True)
            rows: Array | BaseException = results[0]
            for number, (_, answer) in enumerate(waiting):
                if answer.done():  # its caller left
                    continue
                if isinstance(rows, BaseException):
                    answer.set_exception(rows)
                else:
                    answer.set_result((rows[number], len(images)))

    async def _collect(self) -> list[Waiting]:
        waiting = [await self.queue.get()]
        end = time.monotonic() + LONGEST_WAIT
        while len(waiting) < LARGEST_BATCH and (left := end - time.monotonic()) > 0:
            try:
                waiting.append(await asyncio.wait_for(self.queue.get(), left))
            except TimeoutError:
                break
        return waiting
