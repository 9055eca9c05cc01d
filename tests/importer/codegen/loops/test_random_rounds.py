"""Loops over the rounds of random recurrences compute what the rounds do."""

from pathlib import Path

import pytest

from tests.importer.codegen.loops.random_rounds import WIDTH, network
from tests.importer.looped import check, normal
from tests.layout import printed_only as printed_only
from tests.sampling import one_in_two

#: Networks of a test, and tests.
COUNT, TESTS = 25, 12
WEIGHTS = {
    "w": normal(WIDTH, WIDTH) / 2,
    "u": normal(WIDTH, WIDTH, seed=3) / 2,
    "b": normal(1, WIDTH),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("start", one_in_two(range(0, COUNT * TESTS, COUNT)))
def test_random_rounds(tmp_path: Path, start: int) -> None:
    loops = 0
    for seed in range(start, start + COUNT):
        text, length = network(seed)
        feeds = [{"x": normal(n, length, WIDTH), "h": normal(n, WIDTH)} for n in (1, 3)]
        source = check(tmp_path, text, *feeds, weights=WEIGHTS)
        loops += " in range(" in source
    assert loops > COUNT // 3
