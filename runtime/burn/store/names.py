"""Mapping of file keys to module keys: renaming by patterns, and renumbering."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

#: A pattern, and the replacement of each match.
Rule: TypeAlias = tuple[re.Pattern[str], str]
#: Numbers that are nested deeper are unchanged, because keys may be untrusted input.
_MOST_PARTS = 100


def rename(key: str, rules: Iterable[Rule]) -> str:
    """Return ``key`` after each rule in turn, applied to the previous result."""
    for pattern, replacement in rules:
        key = pattern.sub(replacement, key)
    return key


def renumber(keys: Collection[str], wanted: Collection[str]) -> dict[str, str]:
    """Map keys to keys in which the numbers below every prefix are consecutive.

    PyTorch also counts functions in an ``nn.Sequential``: its layers have the keys 0, 2
    and 4, and those of a list of the layers alone 0, 1 and 2. If all numbers below a
    prefix are also in ``wanted``, the keys of the module, they are unchanged.
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
                    is_unchanged = numbers <= theirs.get(tuple(after), set())
                    places[before] = {} if is_unchanged else _ranks(numbers)
                after.append(places[before].get(part, part))
            else:
                after.append(part)
            before = (*before, part)
        result[key] = ".".join(after)
    return result


def _numbers(keys: Iterable[str]) -> dict[tuple[str, ...], set[str]]:
    """Return the numbers that follow each prefix."""
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
    # By length first, to avoid arithmetic with a number of a million digits.
    ordered = sorted(numbers, key=lambda text: (len(text), text))
    return {number: str(rank) for rank, number in enumerate(ordered)}
