"""Cache of tuning results: in memory, and on disk for later processes."""

from collections.abc import Callable
from functools import cache
from typing import Any

from burn.backend.cuda.libraries import cublas_lt, cudnn
from burn.backend.disk_cache import kernel_cache
from burn.digests import sha256
from burn.version import VERSION

#: The algorithms of this process, by device and key.
_CHOSEN: dict[Any, int] = {}


def choice_of(device: int, key: Any, count: int, choose: Callable[[], int]) -> int:
    """Return the number of the algorithm of ``key`` among ``count``, -1 for none.

    It is the result of ``choose`` in this process, or in an earlier one with the same
    device and libraries. ``key`` must have the same ``repr`` in all processes.
    """
    choice = (device, key, count)
    number = _CHOSEN.get(choice)
    if number is None:
        number = _number(read_choice(device, (key, count)), count)
        if number is None:
            number = choose()
            write_choice(device, (key, count), str(number).encode())
        _CHOSEN[choice] = number
    return number


def read_choice(device: int, key: Any) -> bytes | None:
    """Return the content that :func:`write_choice` wrote for ``key``, or None."""
    return kernel_cache().read(_digest(device, key))


def write_choice(device: int, key: Any, content: bytes) -> None:
    """Write a result of tuning for later processes."""
    kernel_cache().write(_digest(device, key), content)


def _number(content: bytes | None, count: int) -> int | None:
    try:
        number = int(content or b"")
    except ValueError:
        return None
    return number if -1 <= number < count else None


def _digest(device: int, key: Any) -> str:
    return sha256(repr((_environment(device), key)).encode()).hexdigest()


@cache
def _environment(device: int) -> tuple[Any, ...]:
    """Return the device and the versions that plans and their times depend on."""
    import cupy

    runtime, dnn, blas = cupy.cuda.runtime, cudnn(), cublas_lt()
    properties = runtime.getDeviceProperties(device)
    return (
        *(VERSION, cupy.__version__),
        *(properties[name] for name in ("name", "major", "minor")),
        *(properties["multiProcessorCount"], runtime.driverGetVersion()),
        *(None if dnn is None else (dnn.__version__, dnn.backend_version()),),
        None if blas is None else blas.get_version(),
    )
