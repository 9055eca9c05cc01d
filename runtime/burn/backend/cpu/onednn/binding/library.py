"""Loading and validation of the oneDNN shared library."""

import ctypes
import os
from typing import NamedTuple

from burn.backend.cpu.onednn.binding.search import NAME, candidates

#: The environment variable that names a library file, which is then the only one tried.
PATH_VARIABLE = "BURN_ONEDNN"
# The number of rounds that a thread of libgomp spins at a barrier before it sleeps.
# With the default, spinning threads slow down other busy processes and OpenBLAS.
SPIN = ("GOMP_SPINCOUNT", "3000")
RUNTIMES = {0: "none", 1: "sequential", 2: "OpenMP", 4: "TBB", 8: "threadpool"}
_SYCL = 512
# Settings of the C library's malloc: the numbers of its parameters, the environment
# variables by which a user sets them, and values. With its own it returns the memory of
# large arrays to the system as soon as they go, and gets it back page by page.
_MALLOC = (
    (-1, "MALLOC_TRIM_THRESHOLD_", 512 << 20),
    (-3, "MALLOC_MMAP_THRESHOLD_", 32 << 20),
)


class Version(ctypes.Structure):
    """The version struct of the library."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


class Library(NamedTuple):
    """A loaded oneDNN: ``calls`` releases the GIL in every call, ``quick`` does not.

    ``quick`` is for functions that are faster than releasing the GIL.
    """

    path: str
    version: str
    runtime: str
    calls: ctypes.CDLL
    quick: ctypes.PyDLL


class LibraryChoice(NamedTuple):
    """The library to use, or None, and the reasons for rejected candidates."""

    library: Library | None
    refused: tuple[str, ...]


def find_library() -> LibraryChoice:
    """Return the first usable library, of version 3 or later and not built for SYCL.

    The candidates are the file in :data:`PATH_VARIABLE` and no other, else those of
    :mod:`burn.backend.cpu.onednn.binding.search`.
    """
    os.environ.setdefault(*SPIN)
    refused: list[str] = []
    path_setting = os.environ.get(PATH_VARIABLE)
    for path in [path_setting] if path_setting else candidates():
        try:
            return LibraryChoice(open_library(path), tuple(refused))
        except (OSError, AttributeError) as error:
            if path != NAME:  # the system need not have one
                refused.append(f"{path}: {error}")
    return LibraryChoice(None, tuple(refused))


def keep_memory() -> None:
    """Configure malloc to keep freed memory for the arrays of the next call.

    Otherwise page faults take a quarter of the time of networks with many small layers.
    Does nothing if the C library has no such settings or the user has set them.
    """
    try:
        choose = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    if not any(variable in os.environ for _, variable, _ in _MALLOC):
        for parameter, _, value in _MALLOC:
            choose(parameter, value)


def open_library(path: str) -> Library:
    """Return the library in ``path``.

    Raises:
        OSError: the file is not a usable library.
        AttributeError: the library is not oneDNN.
    """
    calls = ctypes.CDLL(path)
    calls.dnnl_version.restype = ctypes.POINTER(Version)
    info = calls.dnnl_version().contents
    version = f"{info.major}.{info.minor}.{info.patch}"
    if info.major != 3:
        raise OSError(f"expected version 3 of oneDNN, got {version}")
    if info.cpu_runtime == _SYCL:
        raise OSError(
            f"oneDNN {version} is built for SYCL, whose calls are too slow one by one; "
            f"expected a build with OpenMP"
        )
    runtime = RUNTIMES.get(info.cpu_runtime, f"runtime {info.cpu_runtime}")
    return Library(path, version, runtime, calls, ctypes.PyDLL(path))
