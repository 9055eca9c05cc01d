"""Whether NumPy computes small operations in eager calls, instead of oneDNN.

This is known without oneDNN's binding, whose import is a tenth of the first call of a
small model.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_unlimited = 0


def has_limits() -> bool:
    """Return whether NumPy computes small operations; see :func:`no_limits`."""
    return not _unlimited


@contextmanager
def no_limits() -> Iterator[None]:
    """Leave small operations to the engine in this context, in all threads."""
    global _unlimited
    _unlimited += 1
    try:
        yield
    finally:
        _unlimited -= 1
