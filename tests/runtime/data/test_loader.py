"""Loaders: order by seed and epoch, workers, resume, shares of ranks, errors."""

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, data
from burn.data.dataset import Indices
from burn.data.reading import BatchSource
from burn.data.workers import Workers
from tests.runtime.data.items import (
    Broken,
    Fatal,
    Odd,
    Squares,
    UnpicklableError,
    first_only,
    noisy,
)


def indices(batches: Any) -> list[list[int]]:
    """Return the first part of every batch."""
    return [batch[0].tolist() for batch in batches]


def flat(batches: list[list[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


def test_batches_are_tensors_of_all_items_in_order() -> None:
    loader = data.Loader(Squares(10), batch=4)
    assert len(loader) == 3
    batches = list(loader)
    assert indices(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    index, square = batches[1]
    assert isinstance(index, Tensor)
    assert (index.dtype, square.dtype) == (burn.int64, burn.float32)
    assert square.tolist() == [16, 25, 36, 49]
    short = data.Loader(Squares(10), batch=4, drop_last=True)
    assert len(short) == 2
    assert indices(short) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_order_follows_from_seed_and_epoch() -> None:
    first, second = (data.Loader(Squares(50), batch=8, shuffle=3) for _ in "ab")
    epochs = [indices(first) for _ in range(3)]
    assert epochs == [indices(second) for _ in range(3)]
    assert all(sorted(flat(epoch)) == list(range(50)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert epochs[0] != indices(data.Loader(Squares(50), batch=8, shuffle=4))
    for flag, seed in ((True, 0), (False, None)):
        said = data.Loader(Squares(50), batch=8, shuffle=flag)
        assert indices(said) == indices(data.Loader(Squares(50), batch=8, shuffle=seed))


def test_a_loop_that_is_left_early_counts_as_an_epoch() -> None:
    whole = data.Loader(Squares(20), batch=4, shuffle=0)
    expected = [indices(whole), indices(whole)]
    loader = data.Loader(Squares(20), batch=4, shuffle=0)
    assert indices([next(iter(loader))]) == expected[0][:1]
    assert indices(loader) == expected[1]


@pytest.mark.parametrize("done", [0, 1, 3, 5])
def test_resume_in_the_middle_of_an_epoch(done: int) -> None:
    whole = data.Loader(Squares(18), batch=4, shuffle=1)
    expected = [indices(whole) for _ in range(3)]
    loader = data.Loader(Squares(18), batch=4, shuffle=1)
    list(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    for number, batch in enumerate(loader if done else [], 1):
        assert indices([batch]) == [expected[1][number - 1]]
        if number == done:
            state = loader.state_dict()
            break
    assert all(isinstance(value, int | str) for value in state.values())
    resumed = data.Loader(Squares(18), batch=4, shuffle=1)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert indices(resumed) == expected[1][done:]
    assert indices(resumed) == expected[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 5}, "expected batch 4, got 5"),
        ({"length": 9}, "expected length 10, got 9"),
        ({"shuffle": 2}, "expected shuffle none, got 2"),
        ({"position": 4}, "position up to 3, got 0 and 4"),
        ({"other": 1}, r"expected \['batch', .* got \[.*'other'"),
    ],
)
def test_states_of_other_loaders_are_refused(change: Any, message: str) -> None:
    loader = data.Loader(Squares(10), batch=4)
    before = loader.state_dict()
    with pytest.raises(ValueError, match=message):
        loader.load_state_dict({**before, **change})
    assert loader.state_dict() == before


def test_workers_read_what_one_process_does() -> None:
    def loader(workers: int) -> data.Loader:
        dataset = data.Mapper(Squares(23), noisy)
        return data.Loader(dataset, batch=4, shuffle=5, workers=workers)

    alone = loader(0)
    expected = [list(alone) for _ in range(2)]
    with loader(2) as parallel:
        actual = [list(parallel) for _ in range(2)]
    for epoch, other in zip(expected, actual, strict=True):
        for batch, parallel_batch in zip(epoch, other, strict=True):
            for tensor, parallel_tensor in zip(batch, parallel_batch, strict=True):
                np.testing.assert_array_equal(parallel_tensor.numpy(), tensor.numpy())
    noise = {batch[0].tolist()[0]: batch[1].numpy()[0] for batch in expected[0]}
    assert len({row.tobytes() for row in noise.values()}) == len(noise)
    alone = loader(0)
    alone.load_state_dict({**alone.state_dict(), "epoch": 1, "position": 4})
    np.testing.assert_array_equal(next(iter(alone))[1], expected[1][4][1])


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_name_the_item(workers: int) -> None:
    with data.Loader(Broken(9), batch=3, workers=workers) as loader:
        batches = iter(loader)
        assert indices([next(batches)]) == [[0, 1, 2]]
        message = "item 5 of Broken: OSError: cannot read the file"
        with pytest.raises(data.ItemError, match=message) as caught:
            next(batches)
        assert caught.value.index == 5
        assert caught.value.__cause__ is not None
    message = "item 2 of Odd: UnpicklableError: a"
    odd = data.Loader(Odd(4), workers=workers)
    with odd, pytest.raises(data.ItemError, match=message):
        list(odd)
    assert UnpicklableError("a", "b").function() == "b"


def test_the_end_of_a_worker_is_an_error_and_the_next_loop_starts_new_ones() -> None:
    with data.Loader(Fatal(6), batch=2, workers=1) as loader:
        with pytest.raises(RuntimeError, match="one of 1 workers of a loader ended"):
            list(loader)
        assert indices([next(iter(loader))]) == [[0, 1]]


def test_a_batch_that_was_read_before_the_worker_ended_is_returned() -> None:
    workers = Workers(1, BatchSource(Fatal(6), None, 0))

    def batches() -> Iterator[Indices]:
        yield from np.array([[0, 1], [2, 3]])
        with suppress(BrokenProcessPool):  # the third batch comes after the worker
            workers._started().submit(int).result()
        yield np.array([4, 5])

    read = workers.read(0, batches())
    assert next(read)[0].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="one of 1 workers of a loader ended"):
        next(read)


def test_ranks_share_every_batch() -> None:
    whole = data.Loader(Squares(23), batch=8, shuffle=0)
    shares = [
        data.Loader(Squares(23), batch=8, shuffle=0, rank=rank, ranks=3)
        for rank in range(3)
    ]
    parts = [indices(loader) for loader in shares]
    assert [[len(batch) for batch in part] for part in parts] == [
        [2, 2, 2],
        [3, 3, 2],
        [3, 3, 3],
    ]
    assert indices(whole) == [flat(list(batch)) for batch in zip(*parts, strict=True)]
    assert shares[0].state_dict() == shares[2].state_dict() == whole.state_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch >= 1"),
        ({"workers": -1}, "workers >= 0"),
        ({"shuffle": -1}, "shuffle >= 0 or None, got -1"),
        ({"rank": 2, "ranks": 2}, "rank < ranks, got 2 of 2"),
        ({"batch": 9, "ranks": 2}, "each of 2 ranks in every batch, got a batch of 1"),
    ],
)
def test_wrong_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data.Loader(Squares(10), **options)


def test_collate_functions_and_backends() -> None:
    loader = data.Loader(Squares(5), batch=2, collate=first_only)
    assert list(loader) == [[0, 1], [2, 3], [4]]
    backend = Autodiff(Cpu())
    index, _ = next(iter(data.Loader(Squares(3), batch=2, backend=backend)))
    assert index.backend is backend
    arrays = data.Memory(np.arange(6).reshape(3, 2))
    assert [x.tolist() for x in data.Loader(arrays, batch=2)] == [
        [[0, 1], [2, 3]],
        [[4, 5]],
    ]


def test_arrays_of_different_lengths_are_padded() -> None:
    lengths = (3, 5, 2)
    items = [
        (np.arange(n), np.ones((n, 2), np.float32), np.full(n, 7), n) for n in lengths
    ]
    collate = data.PaddedStack(values=(0, 0.5, -100, 0), multiple=4)
    for workers in (0, 1):
        with data.Loader(items, batch=3, collate=collate, workers=workers) as loader:
            ids, rows, targets, counts = (x.numpy() for x in next(iter(loader)))
        assert ids.shape == targets.shape == (3, 8)
        assert rows.shape == (3, 8, 2)
        np.testing.assert_array_equal(counts, lengths)
        for row, n in enumerate(lengths):
            np.testing.assert_array_equal(ids[row], [*range(n), *[0] * (8 - n)])
            np.testing.assert_array_equal(targets[row], [7] * n + [-100] * (8 - n))
            np.testing.assert_array_equal(rows[row, n:], 0.5)


def test_padding_of_single_arrays() -> None:
    batch = data.PaddedStack(9)([np.array([1, 2]), np.array([3])])
    np.testing.assert_array_equal(batch, [[1, 2], [3, 9]])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "at least one item"),
        ([{"a": np.zeros(2)}], "expected items of arrays, or tuples of them, got dict"),
        ([(np.zeros(2),)], r"a value for each of 1 fields, got \(0, 1\)"),
        (
            [(np.zeros((2, 3)), 1), (np.zeros((2, 4)), 1)],
            r"shapes of rows of items\[0\]",
        ),
    ],
)
def test_items_that_cannot_be_padded(items: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        data.PaddedStack(values=(0, 1))(items)
