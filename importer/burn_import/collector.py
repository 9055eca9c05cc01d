"""Python's collector of garbage, which an import has no work for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Within, nothing looks for garbage in cycles.

    What an import makes it keeps until it ends. Looking through all of that over and
    over takes a third of the time for a large model, and grows faster than the model.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
