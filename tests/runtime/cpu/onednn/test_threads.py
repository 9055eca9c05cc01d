"""Primitives have the help of other threads where that pays."""

from typing import Any

import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import cache, engine
from tests.runtime.onednn import assert_close, needs_onednn, normal

pytestmark = needs_onednn


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The work of every primitive that is asked for, and whether it is done alone."""
    results: list[tuple[int, bool]] = []
    get = cache.Primitives.get

    def noted(self: Any, key: Any, make: Any, work: int) -> Any:
        result = get(self, key, make, work)
        prepared = getattr(result, "_prepared", None)
        if prepared is not None:
            results.append((work, prepared.alone))
        return result

    monkeypatch.setattr(cache.Primitives, "get", noted)
    session = engine.current()
    assert session is not None
    if session.api.set_threads is None:
        pytest.skip("the library does not share its work among OpenMP's threads")
    session.primitives.clear()
    return results


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


@pytest.mark.parametrize(("width", "helped"), [(64, False), (320, True)])
def test_threads_help_to_read_weights_for_one_row(
    made: list[tuple[int, bool]], width: int, helped: bool
) -> None:
    """Of 4 or 102 thousand weights, each of which is read once."""
    weight = burn.Parameter(burn.tensor(normal(width, width) / 8))
    gates = burn.tensor(normal(1, 4 * width, width, seed=1) / 8)
    state = burn.tensor(normal(1, 1, width, seed=2))

    def run(x: Any) -> Any:
        y = ops.matmul(x, weight)
        result = ops.lstm(ops.unsqueeze(y, 0), gates, gates, None, state, state)
        return ops.relu(result[1])

    compiled = burn.compile(run, generated=False)
    x = burn.tensor(normal(1, width, seed=3))
    compiled(x)
    made.clear()
    assert_close(compiled(x).numpy(), run(x).numpy())
    assert made
    assert [alone for _, alone in made[:2]] == [not helped] * 2
