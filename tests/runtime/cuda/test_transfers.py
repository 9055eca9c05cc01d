"""Arrays on their way to CUDA devices go through pinned host memory."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import data

pytestmark = pytest.mark.cuda


def test_batches_are_transferred_from_pinned_memory() -> None:
    cupy: Any = pytest.importorskip("cupy")
    sizes: list[int] = []
    pool = cupy.cuda.PinnedMemoryPool()

    def allocate(size: int) -> Any:
        sizes.append(size)
        return pool.malloc(size)

    images = np.arange(4096, dtype=np.float32).reshape(8, 512)
    cupy.cuda.set_pinned_memory_allocator(allocate)
    try:
        loader = data.Loader(data.Memory(images), batch=4, backend=burn.Cuda(0))
        batches = list(loader)
    finally:
        default = cupy.get_default_pinned_memory_pool()
        cupy.cuda.set_pinned_memory_allocator(default.malloc)
    assert max(sizes) >= 4 * 512 * 4
    for number, batch in enumerate(batches):
        (tensor,) = batch if isinstance(batch, tuple) else (batch,)
        expected = images[4 * number : 4 * number + 4]
        np.testing.assert_array_equal(tensor.numpy(), expected)


def test_the_source_can_change_after_a_transfer_begins() -> None:
    pytest.importorskip("cupy")
    source = np.ones(1 << 22, np.float32)
    tensor = burn.tensor(source, backend=burn.Cuda(0))
    source[:] = 0.0
    assert float(tensor.sum().item()) == 1 << 22
