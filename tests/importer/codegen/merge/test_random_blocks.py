"""Classes of blocks that differ in some statements compute what the blocks do."""

from pathlib import Path

import pytest

from tests.importer.codegen.merge.random_blocks import network
from tests.importer.looped import check, normal
from tests.layout import printed_only as printed_only
from tests.sampling import one_in_two

#: Networks of a test, and tests.
COUNT, TESTS = 25, 24
FEEDS = [{"x": normal(n, 4), "w": normal(n, 4, seed=1)} for n in (1, 3)]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("start", one_in_two(range(0, COUNT * TESTS, COUNT)))
def test_random_blocks(tmp_path: Path, start: int) -> None:
    conditional = 0
    for seed in range(start, start + COUNT):
        text, weights = network(seed)
        source = check(tmp_path, text, *FEEDS, weights=weights)
        conditional += "if self." in source
    assert conditional  # some blocks are one class
