"""Suspension of Python's garbage collector during an import."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Context in which the cyclic garbage collector is disabled.

    An import keeps almost all objects until its end. Scanning them repeatedly takes
    a third of the time for a large model, and grows faster than the model.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
