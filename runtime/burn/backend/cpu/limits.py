"""Whether NumPy computes small operations in eager calls, instead of oneDNN.

This is known without oneDNN's binding, whose import is a tenth of the first call of a
small model.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_unlimited = 0
_lock = threading.Lock()


def has_limits() -> bool:
    """Return whether NumPy computes small operations; see :func:`no_limits`."""
    return not _unlimited


@contextmanager
def no_limits() -> Iterator[None]:
    """Leave small operations to the engine in this context, in all threads."""
    global _unlimited
    with _lock:
        _unlimited += 1
    try:
        yield
    finally:
        with _lock:
            _unlimited -= 1
