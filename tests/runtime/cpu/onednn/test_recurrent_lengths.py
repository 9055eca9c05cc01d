"""Sequences of several lengths in plans, by layers of the library for one length."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.cpu.onednn.test_recurrent import DIRECTIONS, operands, tensors
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.runtime.programs import has_numpy_products

TIME, BATCH, INPUT, HIDDEN = 6, 4, 3, 5
LENGTHS = ([0, 1, 6, 3], [6, 6, 6, 6], [0, 0, 0, 0], [1, 5, 0, 2])


def planned(name: str, direction: str, **options: Any) -> tuple[Any, Any]:
    """A layer of inputs and lengths, and its plan."""
    batch = options.pop("batch", BATCH)
    has_states = options.pop("states", False)
    given = operands(
        name,
        *(direction, TIME, batch, INPUT, HIDDEN),
        h0=has_states,
        c0=has_states,
        peephole=options.pop("peephole", False),
    )
    x, *weights = tensors(given)
    count = 5 if name == "lstm" else 4  # weights, biases and states

    def run(x: Any, lengths: Any) -> Any:
        args = [*weights[:count], lengths, *weights[count + 1 :]]
        return list(getattr(ops, name)(x, *args, direction=direction, **options))

    return run, burn.compile(run)


def compare(run: Any, plan: Any, x: Any, lengths: Any) -> None:
    given = burn.from_numpy(x), burn.from_numpy(np.array(lengths, np.int32))
    with engine.numpy_only():
        expected = run(*given)
    for one, other in zip(plan(*given), expected, strict=True):
        assert_close(one.numpy(), other.numpy(), 2e-5)


CASES: list[tuple[str, dict[str, Any]]] = [
    ("lstm", {}),
    ("lstm", {"peephole": True}),
    ("lstm", {"input_forget": True}),
    ("gru", {}),
    ("gru", {"linear_before_reset": True}),
    ("rnn", {}),
]


@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_lengths(
    name: str, options: Any, direction: str, states: bool, batch: int
) -> None:
    run, plan = planned(name, direction, states=states, batch=batch, **options)
    for seed, lengths in enumerate(LENGTHS):
        compare(run, plan, normal(TIME, batch, INPUT, seed=seed), lengths[:batch])


@needs_onednn
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("name", "options"), CASES[3:5] + CASES[:2])
def test_plans_have_no_kernel_but_the_library(
    name: str, options: Any, direction: str
) -> None:
    run, plan = planned(name, direction, **options)
    for _ in range(2):
        compare(run, plan, normal(TIME, BATCH, INPUT), LENGTHS[0])
    assert not has_numpy_products(plan)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_what_is_behind_the_end_does_not_count(name: str, value: float) -> None:
    run, plan = planned(name, "bidirectional")
    x = normal(TIME, BATCH, INPUT)
    compare(run, plan, x, LENGTHS[0])
    for batch, length in enumerate(LENGTHS[0]):
        x[length:, batch] = value
    compare(run, plan, x, LENGTHS[0])


def test_lengths_above_the_time_are_an_error() -> None:
    run, plan = planned("gru", "reverse")
    x = burn.from_numpy(normal(TIME, BATCH, INPUT))
    for lengths in ([6, 6, 6, 6], [6, 6, 6, 6]):
        plan(x, burn.from_numpy(np.array(lengths, np.int32)))
    for function in (run, plan):
        with pytest.raises(IndexError):
            function(x, burn.from_numpy(np.array([6, 6, 7, 6], np.int32)))
