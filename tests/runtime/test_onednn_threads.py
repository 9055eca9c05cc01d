"""Primitives have the help of other threads where that pays."""

from typing import Any

import pytest

import burn
from burn import ops
from burn.backend.onednn import cache, engine
from burn.plan.work import ASLEEP
from tests.runtime.onednn import assert_close, needs_onednn, normal

pytestmark = needs_onednn


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The work of every primitive that is asked for, and whether it is done alone."""
    found: list[tuple[int, bool]] = []
    get = cache.Primitives.get

    def noted(self: Any, key: Any, make: Any, work: int) -> Any:
        result = get(self, key, make, work)
        prepared = getattr(result, "_prepared", None)
        if prepared is not None:
            found.append((work, prepared.alone))
        return result

    monkeypatch.setattr(cache.Primitives, "get", noted)
    session = engine.current()
    assert session is not None
    if session.api.set_threads is None:
        pytest.skip("the library does not share its work among OpenMP's threads")
    session.primitives.clear()
    return found


@pytest.mark.parametrize("stride", [1, 2, (3, 1), (4, 4)])
@pytest.mark.parametrize("groups", [1, 2])
def test_work_of_a_convolution_is_what_it_multiplies(
    made: list[tuple[int, bool]], stride: Any, groups: int
) -> None:
    x, weight = normal(2, 6, 36, 48), normal(8, 6 // groups, 4, 4, seed=1)
    out = ops.conv(burn.tensor(x), burn.tensor(weight), stride=stride, groups=groups)
    products = out.numpy().size * weight[0].size
    ((work, _),) = made
    assert products <= work <= 1.3 * products  # windows are counted beyond the edges


def layers(count: int) -> Any:
    """So many convolutions of 2.4 million products each."""
    weights = [burn.tensor(normal(16, 16, 3, 3, seed=i) / 8) for i in range(count)]

    def run(x: Any) -> Any:
        for weight in weights:
            x = ops.conv(x, weight, padding=1)
        return x

    return run


@pytest.mark.parametrize(("count", "helped"), [(3, False), (25, True)])
def test_short_plans_do_not_wake_threads(
    made: list[tuple[int, bool]], count: int, helped: bool
) -> None:
    run, x = layers(count), burn.tensor(normal(1, 16, 32, 32))
    expected = run(x).numpy()
    assert made and not any(alone for _, alone in made)  # eager
    made.clear()
    compiled = burn.compile(run)
    for _ in range(3):
        found = compiled(x).numpy()
    assert_close(found, expected)
    planned = made[-count:]
    assert cache.ALONE < planned[0][0] < ASLEEP
    assert [alone for _, alone in planned] == [not helped] * count


def test_both_kinds_are_kept(made: list[tuple[int, bool]]) -> None:
    """A primitive of a plan is no other's that has help."""
    x = burn.tensor(normal(1, 16, 32, 32))
    run = layers(1)
    compiled = burn.compile(run)
    for _ in range(2):
        assert_close(compiled(x).numpy(), run(x).numpy())
    assert {alone for _, alone in made} == {True, False}


@pytest.mark.parametrize(("width", "helped"), [(64, False), (320, True)])
def test_threads_help_to_read_weights_for_one_row(
    made: list[tuple[int, bool]], width: int, helped: bool
) -> None:
    """However short the plan is: 4 or 102 thousand weights are read once."""
    weight = burn.Parameter(burn.tensor(normal(width, width) / 8))
    gates = burn.tensor(normal(1, 4 * width, width, seed=1) / 8)
    state = burn.tensor(normal(1, 1, width, seed=2))

    def run(x: Any) -> Any:
        y = ops.matmul(x, weight)
        found = ops.lstm(ops.unsqueeze(y, 0), gates, gates, None, state, state)
        return ops.relu(found[1])

    compiled, x = burn.compile(run), burn.tensor(normal(1, width, seed=3))
    compiled(x)
    made.clear()
    assert_close(compiled(x).numpy(), run(x).numpy())
    assert made
    assert [alone for _, alone in made[:2]] == [not helped] * 2
