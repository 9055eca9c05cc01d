"""Datasets of the items of others, and batches of structures."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest

import burn
from burn import data
from tests.runtime.data.items import Squares, as_row

LETTERS = list("abcdefg")


class Pair(NamedTuple):
    """Two parts of an item."""

    left: Any
    right: Any


def test_views() -> None:
    assert list(data.Mapper(LETTERS, str.upper)) == list("ABCDEFG")
    assert list(data.Selection(LETTERS, [6, 0, 0])) == ["g", "a", "a"]
    assert list(data.Partial(LETTERS, 2, 5)) == ["c", "d", "e"]
    assert list(data.Partial(LETTERS, 5)) == ["f", "g"]
    composed = data.Composed(LETTERS[:2], [], LETTERS[2:3], LETTERS[3:])
    assert list(composed) == LETTERS
    assert len(data.Composed()) == 0
    windows = data.Windows(LETTERS, 3, stride=2)
    assert list(windows) == [["a", "b", "c"], ["c", "d", "e"], ["e", "f", "g"]]
    assert len(data.Windows(LETTERS, 8)) == 0
    assert list(data.Zipped(LETTERS[:2], [1, 2])) == [("a", 1), ("b", 2)]


def test_shuffled_follows_from_the_seed() -> None:
    first = list(data.Shuffled(LETTERS, 1))
    assert sorted(first) == LETTERS
    assert first == list(data.Shuffled(LETTERS, 1)) != LETTERS
    assert first != list(data.Shuffled(LETTERS, 2))


def test_indices_count_from_the_end_and_are_checked() -> None:
    view = data.Partial(LETTERS, 1, 4)
    assert view[-1] == "d"
    assert view[np.int64(0)] == "b"  # type: ignore[index]
    for index in (3, -4):
        with pytest.raises(IndexError, match="Partial: expected an index below 3"):
            view[index]
    with pytest.raises(TypeError):
        view["a"]  # type: ignore[index]


def test_splits_have_all_items_once() -> None:
    train, valid, test = data.split(range(101), [0.7, 0.2, 0.1], seed=3)
    assert (len(train), len(valid), len(test)) == (71, 20, 10)
    assert sorted([*train, *valid, *test]) == list(range(101))
    (part,) = data.split(range(10), [0.5], seed=None)
    assert list(part) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.Partial(LETTERS, 3, 8), "stop <= 7, got 3 and 8"),
        (lambda: data.Windows(LETTERS, 0), "size and stride >= 1, got 0 and 1"),
        (lambda: data.split(LETTERS, [0.8, 0.3]), "a sum of at most 1"),
        (lambda: data.Zipped(LETTERS, [1]), r"one length, got lengths \[7, 1\]"),
        (lambda: data.Memory(), "one length"),
        (lambda: data.Memory(np.array(1)), "got a scalar"),
        (lambda: data.Selection(LETTERS, np.zeros(2)), "indices, got float64"),
        (lambda: data.Sampler(LETTERS, 8, replacement=False), "at least 8 items"),
        (lambda: data.Sampler([], 1), "items to draw 1 from, got 0"),
        (lambda: data.Sampler(LETTERS, 2, weights=[1]), "expected 7 weights"),
        (lambda: data.Sampler(LETTERS, 2, weights=[-1] * 7), "weights >= 0"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(IndexError, match="indices below 7, got 7"):
        data.Selection(LETTERS, [0, 7])


def test_samples_have_the_weights_and_differ_by_epoch() -> None:
    sampler = data.Sampler(LETTERS, 4000, weights=[0, 1, 3, 0, 0, 0, 0], seed=2)
    counts = Counter(sampler)
    assert counts.keys() == {"b", "c"}
    assert 2.7 < counts["c"] / counts["b"] < 3.3
    once = data.Sampler(LETTERS, 7, replacement=False)
    assert sorted(once) == LETTERS
    loader = data.Loader(data.Sampler(range(100), 20, seed=1), batch=20)
    epochs = [next(iter(loader)).tolist() for _ in range(2)]
    assert epochs[0] != epochs[1]
    again = data.Loader(data.Sampler(range(100), 20, seed=1), batch=20)
    assert [next(iter(again)).tolist() for _ in range(2)] == epochs


def test_batches_read_at_once_are_those_read_by_item() -> None:
    images = np.arange(24.0).reshape(6, 2, 2)
    memory = data.Memory(images, burn.tensor(np.arange(6)), LETTERS[:6])
    view = data.Partial(data.Shuffled(data.Selection(memory, [5, 1, 2, 3, 0])), 1, 5)
    for dataset in (view, data.Zipped(view, view), data.Sampler(view, 4)):
        read = dataset.reader()
        assert read is not None
        _same(read(np.array([2, 0])), data.stack([dataset[2], dataset[0]]))
    assert data.Partial(Squares(3)).reader() is None
    assert data.Zipped(memory, LETTERS[:6]).reader() is None


def _same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for part, other in zip(actual, expected, strict=True):
            _same(part, other)
    elif isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)
    else:
        assert actual == expected


def test_structures_are_stacked() -> None:
    batch = data.stack([as_row((i, i * 0.5)) for i in range(2)])
    assert batch["array"].dtype == np.int16
    assert batch["array"].shape == (2, 3)
    assert batch["square"].dtype == np.float32
    pairs = data.stack([Pair(True, ["x", 1j]), Pair(False, ["y", 2])])
    assert isinstance(pairs, Pair)
    assert pairs.left.tolist() == [True, False]
    assert pairs.right[0] == ["x", "y"]
    tensors = data.as_tensors(pairs)
    assert (tensors.left.dtype, tensors.right[0]) == (burn.bool_, ["x", "y"])
    words = data.as_tensors(np.array(["a", "bc"]))
    assert words.tolist() == ["a", "bc"]


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([], ValueError, "at least one item"),
        ([np.zeros(2), np.zeros(3)], ValueError, r"shapes of items: .*\(2,\).*\(3,\)"),
        ([np.int8(2), np.int16(3)], ValueError, "dtypes of items: expected int8"),
        ([{"a": 1}, {"b": 1}], ValueError, r"keys of items: expected \['a'\]"),
        ([(1, "a"), (1, 2)], TypeError, r"items\[1\]: expected str .* got int"),
        ([1, "a"], TypeError, r"items: expected numbers, got \['int', 'str'\]"),
        ([[1], [1, 2]], ValueError, "lengths of items: expected 1 .* got 2"),
    ],
)
def test_items_that_differ_are_refused(
    items: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        data.stack(items)
