"""Names of dimensions: identifiers, whatever the file calls them.

``batch`` stays, ``past + seq`` is read as a sum, ``Max(1, s0)`` becomes one symbol of
its own. The same text is the same dimension everywhere in a model.
"""

import keyword
import re
from collections.abc import Mapping

from burn_import.tracing.identifiers import symbol_name
from burn_ir.dim import Dim, Poly, symbol
from burn_ir.errors import Undecided
from burn_ir.names import UniqueNames

_TOKEN = re.compile(r"\s*(?:(\d{1,18})|([^\W\d]\w*)|(//|[-+*()]))", re.ASCII)
_LONGEST = 100


class DimNames:
    """The symbols of one model. Names that need no change are never given away."""

    def __init__(self) -> None:
        self._by_text: dict[str, Dim] = {}
        self._names = UniqueNames()
        #: Symbols under other names than those of the file.
        self._renamed: dict[str, Dim] = {}

    def call(self, text: str, name: str) -> None:
        """Give the symbol that the file calls ``text`` another name, or one like it."""
        if text not in self._renamed:
            self._renamed[text] = self.fresh(name)

    def reserve(self, text: str) -> None:
        """Keep the identifiers in ``text`` for whoever wrote them."""
        if len(text) <= _LONGEST and _parse(text) is not None:
            for name in re.findall(r"[^\W\d]\w*", text, re.ASCII):
                self._names.add(name)

    def named(self, text: str) -> Dim:
        """The dimension that the file calls ``text``."""
        if text not in self._by_text:
            short = len(text) <= _LONGEST
            parsed = _parse(text, self._renamed) if short else None
            # A number in the place of a name is a name: the extent is not promised.
            dim = parsed if isinstance(parsed, Poly) else self.fresh(text)
            self._by_text[text] = dim
        return self._by_text[text]

    def fresh(self, text: str) -> Dim:
        """A new symbol, called as much like ``text`` as an identifier can be."""
        return symbol(self._names.unique(symbol_name(text[:_LONGEST], "dim")))


def _parse(text: str, renamed: Mapping[str, Dim] | None = None) -> Dim | None:
    """The dimension ``text`` is an expression of; None if it is none."""
    tokens = _tokens(text)
    if tokens is None:
        return None
    try:
        value = _Parser(tokens, renamed or {}).whole()
    except (_NoExpression, Undecided, ZeroDivisionError):
        return None
    return None if isinstance(value, int) and value < 0 else value


def _tokens(text: str) -> list[str] | None:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


class _NoExpression(Exception):  # noqa: N818  an answer, not a mistake
    """The text is not a sum, product or quotient of names and numbers."""


class _Parser:
    """Recursive descent; the text is short, so its depth is."""

    def __init__(self, tokens: list[str], renamed: Mapping[str, Dim]) -> None:
        self.tokens = [*tokens, ""]
        self.renamed = renamed
        self.at = 0

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def whole(self) -> Dim:
        value = self.sum()
        if self.next():
            raise _NoExpression
        return value

    def sum(self) -> Dim:
        value = self.product()
        while self.tokens[self.at] in ("+", "-"):
            if self.next() == "+":
                value = value + self.product()
            else:
                value = value - self.product()
        return value

    def product(self) -> Dim:
        value = self.atom()
        while self.tokens[self.at] in ("*", "//"):
            times = self.next() == "*"
            value = value * self.atom() if times else value // self.atom()
        return value

    def atom(self) -> Dim:
        token = self.next()
        if token.isdigit():
            return int(token)
        if token == "(":
            value = self.sum()
            if self.next() != ")":
                raise _NoExpression
            return value
        if not token.isidentifier() or keyword.iskeyword(token):
            raise _NoExpression
        return self.renamed[token] if token in self.renamed else symbol(token)
