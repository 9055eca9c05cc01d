"""Names of symbolic dimensions, converted to Python identifiers.

``batch`` stays, ``past + seq`` is parsed as a sum, ``Max(1, s0)`` becomes one new
symbol. Equal texts are the same dimension everywhere in a model.
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
    """The dimension symbols of one model; names that are identifiers stay reserved."""

    def __init__(self) -> None:
        self._by_text: dict[str, Dim] = {}
        self._names = UniqueNames()
        #: Symbols with other names than the file gives them.
        self._renamed: dict[str, Dim] = {}

    def call(self, text: str, name: str) -> None:
        """Rename the file's symbol ``text`` to ``name``, or to a unique variant."""
        if text not in self._renamed:
            self._renamed[text] = self.fresh(name)

    def reserve(self, text: str) -> None:
        """Reserve the identifiers in ``text`` so that no new symbol gets them."""
        if len(text) <= _LONGEST and _parse(text) is not None:
            for name in re.findall(r"[^\W\d]\w*", text, re.ASCII):
                self._names.add(name)

    def named(self, text: str) -> Dim:
        """Return the dimension that the file calls ``text``."""
        if text not in self._by_text:
            short = len(text) <= _LONGEST
            parsed = self._renamed.get(text)  # such as `DynamicDimension.0`
            if parsed is None and short:
                parsed = _parse(text, self._renamed)
            # A number given as a name is a symbol: the file does not fix the extent.
            dim = parsed if isinstance(parsed, Poly) else self.fresh(text)
            self._by_text[text] = dim
        return self._by_text[text]

    def fresh(self, text: str) -> Dim:
        """Return a new symbol with an identifier derived from ``text``."""
        return symbol(self._names.unique(symbol_name(text[:_LONGEST], "dim")))


def _parse(text: str, renamed: Mapping[str, Dim] | None = None) -> Dim | None:
    """Parse ``text`` as an arithmetic expression of dimensions; None if it is none."""
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


class _NoExpression(Exception):  # noqa: N818  control flow, not an error
    """Raised when a text is not a sum, product or quotient of names and numbers."""


class _Parser:
    """Recursive descent parser; short texts bound the recursion depth."""

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
