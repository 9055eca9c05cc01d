"""Limits of work that mean the same on a slow or a busy machine: calls, or seconds.

A limit of time is in seconds of a machine that nothing else uses. Where a test takes
longer, the same interpreter is measured beside it, and the limit is multiplied by as
much as a known piece of work took longer than it takes there.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds that ``_piece`` takes on a core of 2.5 GHz that nothing else uses.
_USUAL = 0.025


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if what is done inside takes more seconds of a processor than these.

    The garbage collector leaves the objects of earlier tests alone from now on: how
    many there are depends on the order of the tests. They stay exempt, because
    ``gc.unfreeze`` would also return those that ``tests/conftest.py`` exempts.
    """
    gc.freeze()
    start = time.process_time()
    yield
    taken = time.process_time() - start
    if taken >= seconds:
        allowed = seconds * slowness()
        assert taken < allowed, f"{taken:.2f} s, of {allowed:.2f} s"


def counted_calls(function: Callable[[], object]) -> int:
    """Return the number of calls of Python functions while ``function`` runs."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def slowness() -> float:
    """Return the current slowdown of this interpreter, 1 at least."""
    return max(1.0, statistics.median(_piece() for _ in range(5)) / _USUAL)


def _piece() -> float:
    """Seconds of a processor that a piece of work takes: calls, objects and bytes."""
    start = time.process_time()
    kept: dict[bytes, tuple[int, list[bytes]]] = {}
    for number in range(30_000):
        name = b"%d" % number
        kept[name] = number, [name[:1], name[1:]]
    assert sum(len(parts) for _, parts in kept.values()) == 2 * len(kept)
    return time.process_time() - start
