"""What a run leaves to ``--all-cases`` or ``--nightly``: much of the same kind."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

#: The architecture and the exporter in the name of a whole model.
EXPORT = re.compile(r"(?:\b|/)(\w+)\.(?:ts|dynamo|script)-op\d+")

#: A plain run keeps one in three cases of a test with at least so many, unless the
#: marker ``sampled`` gives another number. The files directly in ``tests/`` check the
#: repository and are complete.
MANY, ONE_IN = 8, 3

#: Examples of names, literals, comments and words of a file that become source.
EMISSIONS, NIGHTLY_EMISSIONS = 1_000, 50_000


def example_count(count: int) -> int:
    """Return how many examples Hypothesis draws: ``count`` if every case is run.

    A plain run draws fewer, in proportion to its profile.
    """
    every = settings.get_profile("default").max_examples
    return max(1, count * settings().max_examples // every)


def emission_count() -> int:
    """Return how many examples a property of printed text has: 1 000 if every case is
    run, 50 000 of a night.
    """
    nightly = settings.get_profile("nightly").max_examples
    is_nightly = settings().max_examples == nightly
    return NIGHTLY_EMISSIONS if is_nightly else example_count(EMISSIONS)


def is_thorough(item: pytest.Item) -> bool:
    """Return whether a test is for ``--all-cases`` alone."""
    return item.get_closest_marker("thorough") is not None


def is_nightly(item: pytest.Item) -> bool:
    """Return whether a case is for ``--nightly`` alone."""
    return item.get_closest_marker("nightly") is not None


def one_in_two(cases: Iterable[object]) -> list[Any]:
    """Return the parameters of a test of random cases; every other is for the night."""
    return [
        pytest.param(case, marks=[pytest.mark.nightly] * (number % 2))
        for number, case in enumerate(cases)
    ]


def left_out(
    items: Sequence[pytest.Item], is_selected: bool = False
) -> Iterator[pytest.Item]:
    """Return the tests that a plain run leaves out.

    Of whole models, a file of tests has one test of each architecture: the same export
    in each file, and of several options or tests another one. A test with the marker
    ``sampled(n)`` keeps one in ``n`` of its remaining cases, and one of many cases
    without the marker one in ``ONE_IN``. Of tests that ``-k`` selects, only those with
    the marker ``thorough`` are left out.
    """
    if is_selected:
        yield from filter(is_thorough, items)
        return
    dropped = {*filter(is_nightly, items), *alike_or_thorough(items)}
    yield from dropped
    yield from unsampled([item for item in items if item not in dropped])


def unsampled(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Return the cases that are left out of each test: all but one in n.

    The hash of its name decides, so that few cases change when one is added.
    """
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tests.items():
        marker = cases[0].get_closest_marker("sampled")
        is_large = len(cases) >= MANY and name.count("/") > 1
        default = ONE_IN if is_large else 1
        one_in = default if marker is None else marker.args[0]
        if one_in > 1:
            cases.sort(key=lambda item: (crc32(item.nodeid.encode()), item.nodeid))
            yield from cases[-(-len(cases) // one_in) :]


def alike_or_thorough(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Return tests for ``--all-cases`` alone, and whole models alike another one."""
    exports = []
    for item in items:
        if is_thorough(item):
            yield item
        elif item.get_closest_marker("models") and EXPORT.search(item.name):
            exports.append(item)
    for _, group in groupby(sorted(exports, key=family), family):
        alike = list(group)
        kept = min(alike, key=_rank)
        yield from (item for item in alike if item is not kept)


def _rank(item: pytest.Item) -> tuple[int, int]:
    """Return the order in which tests of one architecture are kept.

    That of exports is the same in all files, which then share the imported modules;
    that of options and tests differs.
    """
    export = EXPORT.search(item.name)
    assert export is not None
    return crc32(export[0].lstrip("/").encode()), crc32(item.nodeid.encode())


def family(item: pytest.Item) -> str:
    """Return the file of a test, and the architecture of its model."""
    architecture = EXPORT.search(item.name)
    return f"{item.nodeid.partition('::')[0]} {architecture and architecture[1]}"
