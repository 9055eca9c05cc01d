"""The syntax of RE2's regular expressions, which become automata.

Nothing but where a match ends is asked of them, so groups are not remembered, and lazy
and greedy repetitions are the same.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

Test = Callable[[str], bool]

#: RE2's limits of counted repetitions and of the automaton.
_MOST_REPEATS, _MOST_STATES = 1000, 100_000
_DEEPEST = 100

_PERL = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": "\t\n\f\r ",
}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\x00-\x7f",
    "blank": "\t ",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@[-`{-~",
    "space": "\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_EDGES = {"A": "start", "z": "end", "b": "edge", "B": "inside"}


@dataclass
class State:
    """Where the automaton may go: over a character, or free of charge."""

    test: Test | None = None
    edge: str = ""
    to: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Flags:
    fold: bool = False
    dot_all: bool = False
    lines: bool = False


class Parser:
    """Builds the automaton of a pattern; a part is (first state, open end)."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.states: list[State] = []
        self.flags = _Flags()
        self.depth = 0

    def fault(self, what: str) -> ValueError:
        return ValueError(f"expected a regular expression of RE2, got {what}")

    def add(self, state: State) -> int:
        if len(self.states) >= _MOST_STATES:
            raise self.fault("one too large")
        self.states.append(state)
        return len(self.states) - 1

    def next(self) -> str:
        if self.at >= len(self.text):
            raise self.fault("the end of it too early")
        self.at += 1
        return self.text[self.at - 1]

    def takes(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def either(self) -> tuple[int, int]:
        """Alternatives."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fault("groups nested too deep")
        outer = self.flags
        parts = [self.sequence()]
        while self.takes("|"):
            parts.append(self.sequence())
        self.flags, self.depth = outer, self.depth - 1
        if len(parts) == 1:
            return parts[0]
        end = self.add(State())
        for _, last in parts:
            self.states[last].to.append(end)
        return self.add(State(to=[first for first, _ in parts])), end

    def sequence(self) -> tuple[int, int]:
        """What stands side by side."""
        first = last = self.add(State())
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            start = self.at
            part = self.atom()
            if part is None:
                continue
            head, tail = self.repeated(part, start)
            self.states[last].to.append(head)
            last = tail
        return first, last

    def repeated(self, part: tuple[int, int], start: int) -> tuple[int, int]:
        """``part``, as often as what follows it says."""
        bounds = self.bounds()
        if bounds is None:
            return part
        stop = self.at
        if self.bounds() is not None:
            raise self.fault("a repetition of a repetition")
        least, most = bounds
        copies = [part]
        while len(copies) < max(least, most or 1):
            self.at = start
            again = self.atom()
            assert again is not None
            copies.append(again)
            self.at = stop
        return self.linked(copies, least, most)

    def linked(
        self, copies: list[tuple[int, int]], least: int, most: int | None
    ) -> tuple[int, int]:
        end = self.add(State())
        first = last = self.add(State())
        for number, (head, tail) in enumerate(copies):
            if number >= least:
                self.states[last].to.append(end)
            if most == 0:
                break
            self.states[last].to.append(head)
            last = tail
        self.states[last].to.append(end)
        if most is None:
            self.states[last].to.append(copies[-1][0])
        return first, end

    def bounds(self) -> tuple[int, int | None] | None:
        """The least and the most repetitions asked for here, None if none are."""
        found: tuple[int, int | None] | None = None
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if found is None and self.takes(sign):
                found = counts
        found = found or self.counted()
        if found is not None:
            self.takes("?")  # a lazy one
        return found

    def counted(self) -> tuple[int, int | None] | None:
        """``{n}``, ``{n,}`` or ``{n,m}``; anything else is a brace as such."""
        close = self.text.find("}", self.at)
        if not self.text.startswith("{", self.at) or close < 0:
            return None
        low, comma, high = self.text[self.at + 1 : close].partition(",")
        if not (low.isdecimal() and (high.isdecimal() or not high)):
            return None
        self.at = close + 1
        least = int(low[:5])
        most = int(high[:5]) if high else (None if comma else least)
        if max(least, most or 0) > _MOST_REPEATS or (most or least) < least:
            raise self.fault(f"the repetition {{{low}{comma}{high}}}")
        return least, most

    def single(self, test: Test) -> tuple[int, int]:
        end = self.add(State())
        return self.add(State(test=test, to=[end])), end

    def edge(self, kind: str) -> tuple[int, int]:
        end = self.add(State())
        return self.add(State(edge=kind, to=[end])), end

    def atom(self) -> tuple[int, int] | None:
        """One thing that can be repeated; None for what only sets flags."""
        char = self.next()
        if char == "(":
            return self.group()
        if char == "[":
            return self.single(self.bracket())
        if char == ".":
            every = self.flags.dot_all
            return self.single(lambda c: every or c != "\n")
        if char in "^$":
            line = "line_" if self.flags.lines else ""
            return self.edge(line + ("start" if char == "^" else "end"))
        if char in "*+?":
            raise self.fault(f"{char!r} with nothing to repeat")
        if char == "\\":
            return self.escape()
        return self.single(_among([(char, char)], self.flags.fold))

    def group(self) -> tuple[int, int] | None:
        outer = self.flags
        if self.takes("?") and not self.takes("P<") and not self.takes("<"):
            if not self.set_flags():
                return None
        elif self.text[self.at - 1] == "<":
            close = self.text.find(">", self.at)
            if close < 0 or not self.text[self.at : close].isidentifier():
                raise self.fault("a group of a wrong name")
            self.at = close + 1
        part = self.either()
        if not self.takes(")"):
            raise self.fault("a group without an end")
        self.flags = outer
        return part

    def set_flags(self) -> bool:
        """Read ``i``, ``s``, ``m`` and ``U``; whether a group follows them."""
        on = True
        while (char := self.next()) not in ":)":
            if char == "-":
                on = False
            elif char in "ismU":
                name = {"i": "fold", "s": "dot_all", "m": "lines"}.get(char)
                self.flags = replace(self.flags, **({name: on} if name else {}))
            else:
                raise self.fault(f"(?{char}, which it does not have")
        return char == ":"

    def escape(self) -> tuple[int, int]:
        char = self.next()
        if char in _EDGES:
            return self.edge(_EDGES[char])
        return self.single(self.escaped(char))

    def escaped(self, char: str) -> Test:
        """What a backslash and ``char`` stand for, in or outside of brackets."""
        if char.lower() in _PERL:
            return _negated(_ranges(_PERL[char.lower()]), char.isupper())
        if char in "pP":
            return _negated(self.category(), char == "P")
        if char == "x":
            code = self.hexadecimal()
            return _among([(code, code)], self.flags.fold)
        if char in _ESCAPES:
            char = _ESCAPES[char]
        elif char.isalnum():
            raise self.fault(f"\\{char}, which it does not have")
        return _among([(char, char)], self.flags.fold)

    def hexadecimal(self) -> str:
        if self.takes("{"):
            digits = ""
            while (char := self.next()) != "}":
                digits += char
        else:
            digits = self.next() + self.next()
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise self.fault(f"the character \\x{{{digits}}}") from None

    def category(self) -> Test:
        """A general category of Unicode: ``L``, ``{Lu}``, ``{^Lu}``."""
        name = self.next()
        if name == "{":
            close = self.text.find("}", self.at)
            name, self.at = self.text[self.at : close], close + 1
        wanted = name.removeprefix("^")
        if wanted[:1] not in set("CLMNPSZ") or len(wanted) > 2:
            raise self.fault(f"the category {name!r}, which is not supported")
        return _negated(
            lambda c: unicodedata.category(c).startswith(wanted), name != wanted
        )

    def bracket(self) -> Test:
        """A class of characters."""
        negated = self.takes("^")
        tests: list[Test] = []
        first = True
        while first or not self.takes("]"):
            first = False
            if self.takes("[:"):
                close = self.text.find(":]", self.at)
                name = self.text[self.at : close].removeprefix("^")
                if close < 0 or name not in _POSIX:
                    raise self.fault("a class of an unknown name")
                test = _negated(_ranges(_POSIX[name]), self.text[self.at] == "^")
                tests.append(test)
                self.at = close + 2
            else:
                tests.append(self.member())
        return _negated(lambda c: any(test(c) for test in tests), negated)

    def member(self) -> Test:
        """A character, a range, or an escape in a class."""
        low = self.next()
        if low == "\\":
            low = self.next()
            if low.lower() in _PERL or low in "pP":
                return self.escaped(low)
            low = self.plain(low)
        ends = self.text[self.at : self.at + 2]
        if len(ends) < 2 or ends[0] != "-" or ends[1] == "]":
            return _among([(low, low)], self.flags.fold)
        self.at += 1
        high = self.next()
        high = self.plain(self.next()) if high == "\\" else high
        if high < low:
            raise self.fault(f"the range {low}-{high}")
        return _among([(low, high)], self.flags.fold)

    def plain(self, char: str) -> str:
        if char == "x":
            return self.hexadecimal()
        if char.isalnum() and char not in _ESCAPES:
            raise self.fault(f"\\{char} in a class")
        return _ESCAPES.get(char, char)


def _ranges(text: str) -> Test:
    """A test from ranges written as in a class."""
    pairs = []
    at = 0
    while at < len(text):
        wide = text[at + 1 : at + 2] == "-" and at + 2 < len(text)
        pairs.append((text[at], text[at + 2] if wide else text[at]))
        at += 3 if wide else 1
    return _among(pairs, False)


def _among(pairs: Iterable[tuple[str, str]], fold: bool) -> Test:
    found = list(pairs)

    def test(char: str) -> bool:
        forms = {char, char.lower(), char.upper()} if fold else (char,)
        return any(low <= c <= high for c in forms for low, high in found)

    return test


def _negated(test: Test, negated: bool) -> Test:
    return (lambda c: not test(c)) if negated else test
