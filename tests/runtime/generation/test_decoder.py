"""Decoders with caches of a fixed capacity against caches that grow."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.generation import BindingError, CapacityError, Decoder
from tests.runtime.generation.decoders import WORDS, Counting, Growing, grown
from tests.runtime.onednn import assert_close

CHUNKS = (5, 1, 1, 1, 3, 1, 1)


def tokens_of(batch: int, seed: int, count: int = 13) -> Any:
    return np.random.default_rng(seed).integers(0, WORDS, (batch, count))


@pytest.mark.parametrize("batch", (1, 8))
def test_each_step_gives_what_a_growing_cache_gives(batch: int) -> None:
    model = Growing()
    decoder = Decoder(model, batch=batch, capacity=sum(CHUNKS))
    for seed in range(2):  # the second time in the memory of the first
        tokens, at = tokens_of(batch, seed), 0
        for count, expected in zip(CHUNKS, grown(model, tokens, CHUNKS), strict=True):
            actual = decoder(burn.tensor(tokens[:, at : at + count])).numpy()
            assert_close(actual, expected, 2e-5)
            at += count
            assert decoder.length == at
        decoder.reset()
    assert decoder.notes == []
    assert len(decoder.executables) == 1


@pytest.mark.parametrize("batch", (1, 8))
def test_tokens_are_those_of_a_growing_cache(batch: int) -> None:
    model, prompt = Growing(), tokens_of(batch, 3, 4)
    decoder = Decoder(model, batch=batch, capacity=9)
    for _ in range(2):
        chosen = list(decoder.generate(burn.tensor(prompt), 6))
        decoder.reset()
        whole = prompt
        for token in chosen:
            (logits,) = grown(model, whole, (whole.shape[1],))
            np.testing.assert_array_equal(token, logits[:, -1].argmax(-1))
            whole = np.concatenate([whole, token[:, None]], 1)


def test_padded_rows_give_what_they_give_alone() -> None:
    model, prompt = Growing(), tokens_of(2, 5, 5)
    mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    decoder, one = Decoder(model, batch=2, capacity=12), Decoder(model, capacity=12)
    together = np.array(list(decoder.generate(burn.tensor(prompt), 6, mask=mask)))
    for row, skipped in ((0, 2), (1, 0)):
        given = burn.tensor(prompt[row : row + 1, skipped:])
        alone = np.array(list(one.generate(given, 6)))
        np.testing.assert_array_equal(together[:, row], alone[:, 0])
        one.reset()
    with pytest.raises(ValueError, match="padding on the left of the first tokens"):
        decoder(burn.tensor(prompt[:, :1]), mask[:, :1])


def test_a_full_cache_is_an_error_and_stays_as_it_is() -> None:
    decoder = Decoder(Growing(), capacity=6)
    tokens = burn.tensor(tokens_of(1, 7))
    decoder(tokens[:, :5])
    message = "the cache has room for 6 tokens: 5 are there, 2 more were given"
    with pytest.raises(CapacityError, match=message):
        decoder(tokens[:, 5:7])
    with pytest.raises(CapacityError):
        next(decoder.generate(tokens[:, 5:6], 2))
    decoder(tokens[:, 5:6])
    with pytest.raises(CapacityError):
        decoder.next(tokens[:, 6:7])
    assert decoder.length == 6


def test_generation_stops_when_every_row_has_stopped() -> None:
    decoder = Decoder(Growing(), batch=2, capacity=12)
    prompt = burn.tensor(tokens_of(2, 1, 3))
    chosen = np.array(list(decoder.generate(prompt, 8)))
    stop = chosen[3].tolist()
    ends = [np.isin(chosen[:, row], stop).argmax() for row in (0, 1)]
    decoder.reset()
    stopped = np.array(list(decoder.generate(prompt, 8, stop=stop)))
    np.testing.assert_array_equal(stopped, chosen[: max(ends) + 1])


def test_a_choice_of_the_caller_is_part_of_the_plan() -> None:
    decoder = Decoder(Growing(), capacity=12)
    prompt = burn.tensor(tokens_of(1, 1, 3))

    def least(logits: Any) -> Any:
        return ops.argmin(logits, -1)

    chosen = list(decoder.generate(prompt, 4, select=least))
    decoder.reset()
    logits = decoder(prompt).numpy()[:, -1]
    for token in chosen:
        np.testing.assert_array_equal(token, logits.argmin(-1))
        logits = decoder(burn.tensor(token[:, None])).numpy()[:, -1]


def test_models_that_count_positions_themselves_are_refused() -> None:
    message = "Counting gives other results where the past is longer than what its mask"
    with pytest.raises(BindingError, match=message):
        Decoder(Counting(), capacity=8)


def test_models_without_a_cache_are_refused() -> None:
    class Plain(burn.nn.Module):
        @burn.nn.check_inputs(input_ids="int64[batch, seq]")
        def __call__(self, input_ids: Any) -> Any:
            return input_ids

    message = r"an input of an attention mask, \[batch, length\], got input_ids: int64"
    with pytest.raises(BindingError, match=message):
        Decoder(Plain(), capacity=8)
    with pytest.raises(BindingError, match="not declared by nn.check_inputs"):
        Decoder(burn.nn.Linear(2, 2), capacity=8)


@pytest.mark.parametrize("shape", ((3,), (2, 1)))
def test_tokens_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    decoder = Decoder(Growing(), capacity=8)
    with pytest.raises(ValueError, match=r"expected tokens \[1, length\]"):
        decoder(burn.tensor(np.zeros(shape, np.int64)))
