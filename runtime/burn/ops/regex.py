"""Regular expressions of RE2's syntax, matched in time linear in the text.

All ways through the automaton of a pattern are followed at once, so that no text,
however chosen, makes a match slow; Python's own ``re`` goes back and may take forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from burn.ops.regex_syntax import Parser

#: How many steps of an automaton are remembered.
_REMEMBERED = 10_000

Places = frozenset[int]


class Regex:
    """A compiled pattern.

    Raises:
        ValueError: RE2 has no such pattern, or does not do it here: only general
            categories of Unicode are known, no scripts.
    """

    def __init__(self, pattern: str) -> None:
        parser = Parser(pattern)
        first, last = parser.either()
        if parser.at < len(pattern):
            raise parser.fault("a bracket without a beginning")
        self._states, self._first, self._last = parser.states, first, last
        self._edges = any(state.edge for state in self._states)
        self._known: dict[tuple[Places, str], Places] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole of ``text`` matches."""
        places = self._reached([self._first], text, 0)
        for at, char in enumerate(text):
            if not places:
                return False
            places = self._step(places, char, text, at + 1)
        return self._last in places

    def longest(self, text: str, start: int) -> int | None:
        """Where the longest match from ``start`` on ends, None if there is none."""
        places = self._reached([self._first], text, start)
        end = start if self._last in places else None
        for at in range(start, len(text)):
            places = self._step(places, text[at], text, at + 1)
            if not places:
                break
            if self._last in places:
                end = at + 1
        return end

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of matches that are not empty: the first, the longest there."""
        at = 0
        while at < len(text):
            end = self.longest(text, at)
            if end is None or end == at:
                at += 1
                continue
            yield at, end
            at = end

    def _step(self, places: Places, char: str, text: str, at: int) -> Places:
        """The places behind ``char``."""
        if not self._edges:
            known = self._known.get((places, char))
            if known is not None:
                return known
        after = []
        for place in places:
            state = self._states[place]
            if state.test is not None and state.test(char):
                after += state.to
        reached = self._reached(after, text, at)
        if not self._edges and len(self._known) < _REMEMBERED:
            self._known[places, char] = reached
        return reached

    def _reached(self, places: list[int], text: str, at: int) -> Places:
        """``places`` and what is reached from them without a character."""
        found = set(places)
        left = list(found)
        while left:
            state = self._states[left.pop()]
            if state.test is not None or not _holds(state.edge, text, at):
                continue
            for place in state.to:
                if place not in found:
                    found.add(place)
                    left.append(place)
        return frozenset(found)


def _holds(edge: str, text: str, at: int) -> bool:
    """Whether an assertion about the place ``at`` in ``text`` is true."""
    if not edge:
        return True
    if edge in ("start", "line_start"):
        return at == 0 or (edge != "start" and text[at - 1] == "\n")
    if edge in ("end", "line_end"):
        return at == len(text) or (edge != "end" and text[at] == "\n")
    before = at > 0 and _is_word(text[at - 1])
    behind = at < len(text) and _is_word(text[at])
    return (before != behind) == (edge == "edge")


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Regex:
    """The pattern, compiled once."""
    return Regex(pattern)
