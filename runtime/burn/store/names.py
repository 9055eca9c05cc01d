"""Keys of files as keys of modules: renamed by patterns, numbered without gaps."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

#: A pattern that is searched for, and what each place where it is found becomes.
Rule: TypeAlias = tuple[re.Pattern[str], str]
#: Numbers that are nested deeper stay: keys may come from strangers.
_MOST_PARTS = 100


def renamed(key: str, rules: Iterable[Rule]) -> str:
    """``key`` after each rule in turn, which sees what the one before made of it."""
    for pattern, replacement in rules:
        key = pattern.sub(replacement, key)
    return key


def renumbered(keys: Collection[str], wanted: Collection[str]) -> dict[str, str]:
    """The keys by what they become once the numbers below every prefix have no gaps.

    PyTorch counts functions in an ``nn.Sequential`` too: its layers have the keys 0, 2
    and 4, and those of a list of the layers alone 0, 1 and 2. Where all numbers below
    a prefix are also in ``wanted``, the keys of the module, they stay as they are.
    """
    theirs = _numbers(wanted)
    places: dict[tuple[str, ...], dict[str, str]] = {}
    ours = _numbers(keys)
    result = {}
    for key in keys:
        before, after = tuple[str, ...](), list[str]()
        for part in key.split(".", _MOST_PARTS):
            if _is_number(part):
                if before not in places:
                    numbers = ours[before]
                    kept = numbers <= theirs.get(tuple(after), set())
                    places[before] = {} if kept else _ranks(numbers)
                after.append(places[before].get(part, part))
            else:
                after.append(part)
            before = (*before, part)
        result[key] = ".".join(after)
    return result


def _numbers(keys: Iterable[str]) -> dict[tuple[str, ...], set[str]]:
    """The numbers that follow each prefix."""
    numbers: dict[tuple[str, ...], set[str]] = {}
    for key in keys:
        for prefix, part in _steps(key):
            if _is_number(part):
                numbers.setdefault(prefix, set()).add(part)
    return numbers


def _steps(key: str) -> Iterator[tuple[tuple[str, ...], str]]:
    parts = tuple(key.split(".", _MOST_PARTS))
    for at, part in enumerate(parts):
        yield parts[:at], part


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal()


def _ranks(numbers: Iterable[str]) -> dict[str, str]:
    # By length first: a number of a million digits is not to be computed with.
    ordered = sorted(numbers, key=lambda text: (len(text), text))
    return {number: str(rank) for rank, number in enumerate(ordered)}
