"""Items of other libraries, and datasets that loaders refuse."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from burn import data


class ForeignArray:
    """An array of another library, as PyTorch's tensors on the CPU."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.array


ROWS = [(ForeignArray(np.full(3, n, np.float32)), n) for n in range(4)]


def test_arrays_of_other_libraries_are_stacked() -> None:
    rows, numbers = next(iter(data.Loader(ROWS, batch=4)))
    np.testing.assert_array_equal(rows.numpy(), [[n] * 3 for n in range(4)])
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(numbers.numpy(), range(4))


def test_arrays_of_other_libraries_are_padded() -> None:
    items = [(ForeignArray(np.arange(n)), n) for n in (2, 3)]
    rows, _ = data.PaddedStack(values=-1, multiple=4)(items)
    np.testing.assert_array_equal(rows, [[0, 1, -1, -1], [0, 1, 2, -1]])


def test_images_of_pillow_are_stacked() -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (5, 4), (1, 2, 3))
    images = data.stack([image, image])
    assert images.shape == (2, 4, 5, 3) and images.dtype == np.uint8


@pytest.mark.torch
def test_datasets_for_the_loader_of_torch() -> None:
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.ones(4, 3), torch.arange(4))
    rows, numbers = next(iter(data.Loader(dataset, batch=4)))
    assert rows.shape == (4, 3)
    np.testing.assert_array_equal(numbers.numpy(), range(4))


class Stream:
    """Items one after the other, without a length."""

    def __iter__(self) -> Iterator[int]:
        yield from range(3)


def test_a_dataset_has_a_length() -> None:
    stream: Any = Stream()
    with pytest.raises(
        TypeError, match="a length and items by index, as a list, got S"
    ):
        data.Loader(stream)


def test_functions_that_workers_cannot_import_are_refused() -> None:
    dataset = data.Mapper(ROWS, lambda item: item[1])
    with (
        data.Loader(dataset, workers=1) as loader,
        pytest.raises(TypeError, match="sent to workers .no lambdas"),
    ):
        next(iter(loader))
