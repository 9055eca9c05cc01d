"""Unique names of values and dimensions."""

from __future__ import annotations

from collections.abc import Container, Iterable


def free_name(name: str, *used: Container[str]) -> str:
    """Return ``name`` with underscores appended until no container has it."""
    while any(name in names for names in used):
        name += "_"
    return name


class UniqueNames:
    """Used names: a name that is in use gets a number.

    ``log`` has every name in the order in which it was added, with the requested
    name and its previous number, so that ``forget`` can restore the earlier state.
    Without the numbers, each search would start again from 2.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.numbers: dict[str, int] = dict.fromkeys(names, 1)
        self.names: set[str] = set(self.numbers)
        self.log: list[tuple[str, str, int]] = [(n, n, 1) for n in self.numbers]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def unique(self, name: str) -> str:
        """Add and return ``name``, or the first free of ``name_2``, ``name_3``, ..."""
        unique, number = name, self.numbers.get(name, 1)
        before = number
        while unique in self.names:
            number += 1
            unique = f"{name}{self.joint(name)}{number}"
        self.names.add(unique)
        self.numbers[name] = number
        self.log.append((unique, name, before))
        return unique

    def joint(self, name: str) -> str:
        """Return the separator between ``name`` and its number."""
        return "_"

    def add(self, name: str) -> None:
        """Add ``name``, which may be in use already."""
        if name not in self.names:
            self.unique(name)

    def forget(self, count: int) -> None:
        """Remove all names but the first ``count`` that were added."""
        while len(self.log) > count:
            unique, name, number = self.log.pop()
            self.names.discard(unique)
            self.numbers[name] = number
