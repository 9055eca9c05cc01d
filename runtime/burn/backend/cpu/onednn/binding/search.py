"""Search paths of the oneDNN library, and instructions if it is missing.

=============================  ===================================================
installed by                   location
=============================  ===================================================
``uv pip install --target``    ``lib`` beside the package ``burn``
unpacked wheels                ``onednn_cpu_gomp-*.data/data/lib`` beside ``burn``
PyInstaller                    the folder of the program's files
``pip``, ``uv``, conda         ``lib`` of the environment
a zip application              beside the zip file, or ``lib`` there
``pip install --user``         in the wheel's list of files
the system                     on the loader's path
=============================  ===================================================

``pip install --target`` omits the library, since it does not copy ``lib``.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

WHEEL = "onednn-cpu-gomp"
NAME = "libdnnl.so.3"
_UNPACKED = f"{WHEEL.replace('-', '_')}-*.data/data/lib"
#: The parent folder of the package ``burn``; in a zip application this is a path inside
#: of the zip file.
SITE = Path(__file__).parents[5]


def candidates() -> Iterator[str]:
    """Yield the existing library files, then the library name for the loader."""
    yield from map(str, library_files())
    if sys.platform == "linux":
        yield NAME


def library_files() -> Iterator[Path]:
    """Yield the oneDNN files that exist, each once."""
    files: set[Path] = set()
    for path in _possible_files():
        if path.is_file() and (file := path.resolve()) not in files:
            files.add(file)
            yield file


def has_wheel() -> bool:
    """Return whether there is a wheel of oneDNN for this Python and platform."""
    return (
        sys.platform == "linux"
        and platform.machine() == "x86_64"
        and platform.libc_ver()[0] == "glibc"
    )


def remedy() -> str:
    """Return installation instructions for the way this program was installed."""
    archive = _archive()
    if archive is not None:
        return (
            f"Libraries cannot be loaded out of {archive.name}: put {NAME} of the "
            f"wheel {WHEEL} beside it, or pip install {WHEEL} for the Python that runs "
            "it"
        )
    if hasattr(sys, "_MEIPASS"):
        return (
            f"PyInstaller collects {NAME} if the wheel is installed where the program "
            f"is built: pip install {WHEEL}"
        )
    if next(_wheel_libraries(), None) is not None:
        return (
            f"The wheel is installed without {NAME}, as by pip install --target. "
            f"Unpack it there: pip download --no-deps {WHEEL}, then python -m zipfile "
            f"-e {WHEEL.replace('-', '_')}-*.whl {SITE}"
        )
    return f"pip install {WHEEL}"


def _possible_files() -> Iterator[Path]:
    """Yield the paths at which the library may be.

    The list of the wheel's files comes last: to read it takes longer than all others.
    """
    if sys.platform == "linux":
        for folder in _folders():
            yield folder / NAME
    yield from _wheel_libraries()


def _wheel_libraries() -> Iterator[Path]:
    """Yield the library files in the wheel's RECORD, which may not exist."""
    from importlib import metadata

    try:
        files = metadata.files(WHEEL) or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == NAME:
            yield Path(str(file.locate()))


def _folders() -> Iterator[Path]:
    archive = _archive()
    site = SITE if archive is None else archive.parent
    yield from (site, site / "lib", *sorted(site.glob(_UNPACKED)))
    program = getattr(sys, "_MEIPASS", None)
    if program is not None:
        yield Path(program)
    yield from (Path(sys.prefix, "lib"), Path(sys.base_prefix, "lib"))


def _archive() -> Path | None:
    """Return the zip file that contains the package, None if there is none."""
    return next((path for path in (SITE, *SITE.parents) if path.is_file()), None)
