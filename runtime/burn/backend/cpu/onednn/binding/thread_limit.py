"""Limits on the threads of oneDNN, generated kernels and NumPy's BLAS."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from burn.backend.cpu.onednn.binding.engine import loaded

#: The extra that installs threadpoolctl.
EXTRA = "burn-runtime[threads]"


class _Limit(threading.local):
    count: int | None = None


_LIMIT = _Limit()


def limit_in_force() -> int | None:
    """Return how many threads may compute for the calling thread, None if any may."""
    return _LIMIT.count


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Let at most ``count`` threads compute for the calling thread.

    Raises:
        ImportError: threadpoolctl, which limits BLAS, is not installed.
    """
    session = loaded()
    with ExitStack() as stack:
        if session is not None:
            stack.enter_context(session.primitives.limited(count))
        stack.enter_context(blas_limits().limited(count))
        before = limit_in_force()
        _LIMIT.count = count if before is None else min(count, before)
        try:
            yield
        finally:
            _LIMIT.count = before


class BlasLimits:
    """The limits that are in force. BLAS has one number of threads for all callers."""

    def __init__(self, libraries: list[Any]) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._counts: list[int] = []
        self._before: list[int] = []

    @contextmanager
    def limited(self, count: int) -> Iterator[None]:
        """Let at most ``count`` threads compute a product of BLAS."""
        with self._lock:
            if not self._counts:
                self._before = [each.get_num_threads() for each in self._libraries]
            self._counts.append(count)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._counts.remove(count)
                self._apply()

    def _apply(self) -> None:
        for library, before in zip(self._libraries, self._before, strict=True):
            library.set_num_threads(min([*self._counts, before]))


@cache
def blas_limits() -> BlasLimits:
    """Return the limits of the BLAS that NumPy has loaded.

    Raises:
        ImportError: threadpoolctl is not installed.
    """
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError as error:
        raise ImportError(
            f"a limit on threads needs threadpoolctl: pip install '{EXTRA}'"
        ) from error
    controller = ThreadpoolController().select(user_api="blas")
    return BlasLimits(controller.lib_controllers)
