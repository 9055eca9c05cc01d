"""The architectures of each library, and which libraries are installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec

from tests.wild.entry import Entry

#: The packages that each part of the catalogue needs.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "research": ("torch",),
    "torchvision": ("torch", "torchvision"),
    "timm": ("torch", "torchvision", "timm"),
    "transformers": ("torch", "transformers"),
    "diffusers": ("torch", "diffusers"),
}
#: The library of programs by seed, which belongs to no table.
RANDOM = "random"


def missing_packages(library: str) -> list[str]:
    """Return the packages that ``library`` needs and that are not installed."""
    packages = LIBRARIES.get(library, ("torch",))
    return [name for name in packages if find_spec(name) is None]


def read_catalogue(
    libraries: Sequence[str], seeds: Iterable[int] = range(100)
) -> list[Entry]:
    """Return the entries of ``libraries``, which have to be installed.

    ``seeds`` are those of random programs.
    """
    if find_spec("torchvision") is not None:
        from tests.wild.vision_operators import ensure_operators

        ensure_operators()
    entries: list[Entry] = []
    for library in libraries:
        module = import_module(f"tests.wild.catalogue.{library}_models")
        entries += module.list_entries(*[seeds] * (library == RANDOM))
    return entries
