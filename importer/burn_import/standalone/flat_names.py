"""Unique names for definitions of several modules in one file."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable, Mapping

from burn_import.standalone.library import Definition

_TAKEN = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


def flat_names(
    definitions: Iterable[Definition],
    reserved: Iterable[str],
    readers: Mapping[Definition, set[str]],
) -> dict[tuple[Definition, str], str]:
    """Return a name for each name of each definition, made unique by underscores.

    ``reserved`` are names with other meanings in the file. ``readers`` has the local
    names of all readers of a definition, which must not shadow it.
    """
    used = set(reserved) | _TAKEN
    result: dict[tuple[Definition, str], str] = {}
    for definition in definitions:
        hidden = readers.get(definition, set())
        for name in definition.names:
            new = name
            while new in used or new in hidden:
                new += "_"
            used.add(new)
            result[definition, name] = new
    return result
