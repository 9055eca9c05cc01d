"""The calls of a plan, before some of them are replaced by generated kernels."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from burn.plan.plan_ir import Read, Step

#: The kernel of an entry that a generated kernel makes.
GENERATED = "generated"


class Native(NamedTuple):
    """A function of machine code and its arguments.

    Its status is 0, unless calls of Python have to be made instead.
    """

    function: int
    args: tuple[int, ...]


class Entry(NamedTuple):
    """A call of a plan, and the plan steps it belongs to.

    ``alone`` is None for a call that is not oneDNN's, else whether it is
    single-threaded. ``kernel`` is oneDNN's name of its code, or :data:`GENERATED`.
    ``native`` is the equivalent function of machine code, if there is one.
    """

    alone: bool | None
    call: Callable[[], Any]
    steps: tuple[Step | Read, ...] = ()
    kernel: str = ""
    native: Native | None = None


class Free(NamedTuple):
    """Memory from ``low`` to ``high`` that is dead after a number of calls."""

    calls: int
    low: int
    high: int


def batches(entries: list[Entry], is_batching: bool) -> Iterator[list[Entry]]:
    """Yield the calls in order; with ``is_batching`` adjacent machine code in batches.

    Calls of oneDNN with different numbers of threads are not in one batch.
    """
    run: list[Entry] = []
    alone: bool | None = None
    for entry in entries:
        is_native = is_batching and entry.native and run and run[-1].native
        changes_threads = None not in (alone, entry.alone) and alone != entry.alone
        if run and (changes_threads or not is_native):
            yield run
            run, alone = [], None
        run.append(entry)
        alone = entry.alone if alone is None else alone
    if run:
        yield run
