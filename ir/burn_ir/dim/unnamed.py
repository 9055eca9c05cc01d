"""Fresh symbols for dimensions that depend on the data."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from burn_ir.dim.formulas import Poly, symbol
from burn_ir.errors import Undecided

_counter: ContextVar[Iterator[int]] = ContextVar("burn_ir.unnamed")


def unnamed() -> Poly:
    """Return a fresh symbol for a data-dependent dimension.

    Raises:
        Undecided: called outside of type inference.
    """
    counter = _counter.get(None)
    if counter is None:
        raise Undecided("the extent depends on the data")
    return symbol(f"?{next(counter)}")


@contextmanager
def counting_unnamed() -> Iterator[None]:
    """Number fresh symbols from 0 in this context, for equal names in each run."""
    token = _counter.set(itertools.count())
    try:
        yield
    finally:
        _counter.reset(token)
