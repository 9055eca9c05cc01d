"""Operations on strings, arrays of Python objects on the host."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.regex import Regex, compiled
from burn.ops.support import Array
from burn.primitive import primitive

_TEXT = "strings have no gradient"
#: The markers at the beginning and the end of a text.
_MARKS = ("\x02", "\x03")


@primitive(no_gradient=_TEXT)
def string_concat(x: Array, y: Array) -> Array:
    """Return the concatenation of the strings of ``x`` and ``y``, which broadcast."""
    return np.asarray(np.add(x, y), dtypes.string)


@primitive(outputs=2, no_gradient=_TEXT)
def string_split(
    x: Array, *, delimiter: str = "", maxsplit: int | None = None
) -> tuple[Array, Array]:
    """Return the parts of each string along a new last axis, and their int64 counts.

    Shorter rows are padded with empty strings. Without ``delimiter``, strings are split
    at whitespace, ignoring it at the ends. There are at most ``maxsplit`` splits.
    """
    most = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, most) for text in x.ravel().tolist()]
    counts = np.array([len(row) for row in parts], np.int64)
    return _padded(parts, x.shape), counts.reshape(x.shape)


@primitive(no_gradient=_TEXT)
def regex_full_match(x: Array, *, pattern: str) -> Array:
    """Return whether each whole string matches the RE2 ``pattern``.

    Raises:
        ValueError: the pattern is invalid.
    """
    return _mapped(x, compiled(pattern).matches, np.bool_)


@primitive(no_gradient=_TEXT)
def string_normalize(
    x: Array,
    *,
    case: str = "none",
    stopwords: tuple[str, ...] = (),
    case_sensitive: bool = False,
) -> Array:
    """Return ``x`` ([n] or [1, n]) without ``stopwords``, in "lower" or "upper" case.

    If nothing remains, the result has one empty string.
    """
    fold = str if case_sensitive else str.lower
    banned = {fold(word) for word in stopwords}
    change = {"lower": str.lower, "upper": str.upper}.get(case, str)
    words = [change(w) for w in x.ravel().tolist() if fold(w) not in banned]
    return _strings(words or [""]).reshape((*x.shape[:-1], -1))


@primitive(no_gradient=_TEXT)
def tokenize(
    x: Array,
    *,
    separators: tuple[str, ...] = (),
    pattern: str = "",
    pad: str = "",
    min_length: int = 1,
    mark: bool = False,
) -> Array:
    """Return the tokens of each string along a new last axis, padded with ``pad``.

    Tokens are the matches of ``pattern`` or, without it, the text between matches of
    the ``separators``, applied one after another; both are RE2. An empty separator
    makes every character a token. Tokens of fewer than ``min_length`` characters are
    dropped. ``mark`` adds a token at the beginning and the end.

    Raises:
        ValueError: a pattern is invalid.
    """
    texts = x.ravel().tolist()
    if pattern:
        wanted = compiled(pattern)
        rows = [[text[a:b] for a, b in wanted.spans(text)] for text in texts]
        rows = [[token for token in row if len(token) >= min_length] for row in rows]
    elif separators in ((), ("",)):
        rows = [list(text) for text in texts]
    else:
        rows = [_separated(text, separators, min_length) for text in texts]
    if not any(rows):
        return np.full((*x.shape, 0), "", dtypes.string)
    if mark:
        rows = [[_MARKS[0], *row, _MARKS[1]] for row in rows]
    return _padded(rows, x.shape, pad)


def _separated(text: str, separators: tuple[str, ...], least: int) -> list[str]:
    rows = [text] if text else []
    for separator in separators:
        divider = compiled(separator)
        rows = [part for row in rows for part in _between(row, divider, least)]
    return rows


def _between(text: str, divider: Regex, least: int) -> Iterable[str]:
    """Yield the nonempty text between matches, if it is long enough."""
    at = 0
    for start, end in [*divider.spans(text), (len(text), len(text))]:
        if start - at >= max(least, 1):
            yield text[at:start]
        at = end


@primitive(no_gradient="counts have no gradient")
def tfidf(
    x: Array,
    pool: Array,
    columns: Array,
    weights: Array | None = None,
    *,
    starts: tuple[int, ...],
    lengths: tuple[int, int],
    mode: str = "tf",
    max_skip: int = 0,
) -> Array:
    """Return float32 counts of a pool's n-grams in sequences ``x``, [n] or [rows, n].

    The n-grams of length n start at ``starts[n - 1]`` in ``pool``; ``columns`` are the
    output columns of their counts, and ``lengths`` the minimum and maximum n. Their
    items may be up to ``max_skip`` items apart. ``mode`` "tf" returns the counts,
    "tfidf" the counts times ``weights``, and "idf" the weights of present n-grams;
    there is one weight per n-gram.
    """
    length = x.shape[-1] if x.ndim else 1
    rows = x.reshape(prod(x.shape[:-1]), length)
    out = np.zeros(
        (len(rows), int(columns.max()) + 1 if columns.size else 0), np.float32
    )
    numbered, tokens = _numbered(pool, rows)
    ends = (*starts[1:], len(pool))
    before = 0
    for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        grams = numbered[start:end].reshape(-1, n)
        column_of = columns[before : before + len(grams)]
        if lengths[0] <= n <= lengths[1] and len(grams):
            for skip in range(1 if n == 1 else max_skip + 1):
                row, gram = _occurrences(tokens, grams, skip + 1)
                np.add.at(out, (row, column_of[gram]), np.float32(1))
        before += len(grams)
    if mode != "tf":
        scale = np.ones(out.shape[1], np.float32)
        if weights is not None:
            scale[columns] = weights
        out = (out if mode == "tfidf" else out > 0) * scale
    return out.reshape((*x.shape[:-1], out.shape[1]))


def _numbered(pool: Array, rows: Array) -> tuple[Array, Array]:
    """Return the pool and the rows as item ids; -1 for items of no n-gram."""
    number: dict[Any, int] = {}
    numbered = [number.setdefault(item, len(number)) for item in pool.tolist()]
    tokens = [number.get(item, -1) for item in rows.ravel().tolist()]
    return np.array(numbered, np.int64), np.array(tokens, np.int64).reshape(rows.shape)


def _occurrences(tokens: Array, grams: Array, step: int) -> tuple[Array, Array]:
    """Return row and number of every n-gram found in rows with distance ``step``."""
    count, length = tokens.shape
    n = grams.shape[1]
    starts = length - (n - 1) * step
    if starts <= 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    base = 1 + max(0, *(int(part.max()) for part in (tokens, grams) if part.size))
    # Prefixes are numbered item by item, so that numbers stay small.
    code, target = tokens[:, :starts], grams[:, 0]
    for i in range(1, n):
        item = tokens[:, i * step : i * step + starts]
        prefixes, target = np.unique(target * base + grams[:, i], return_inverse=True)
        key = code * base + item
        position = np.minimum(np.searchsorted(prefixes, key), len(prefixes) - 1)
        there = (code >= 0) & (item >= 0) & (prefixes[position] == key)
        code = np.where(there, position, -1)
    row, at = np.nonzero(code >= 0)
    order = np.argsort(target, kind="stable")
    codes = code[row, at]
    spot = np.minimum(np.searchsorted(target[order], codes), len(order) - 1)
    there = target[order][spot] == codes
    return row[there], order[spot][there]


def _mapped(x: Array, function: Callable[[str], Any], dtype: Any) -> Array:
    flat = np.array([function(text) for text in x.ravel().tolist()], dtype)
    return flat.reshape(x.shape)


def _strings(items: list[str]) -> Array:
    out = np.empty(len(items), dtypes.string)
    out[:] = items
    return out


def _padded(rows: list[list[str]], shape: tuple[int, ...], pad: str = "") -> Array:
    """Return rows of strings as [*shape, longest], padded."""
    width = max((len(row) for row in rows), default=0)
    out = np.full((len(rows), width), pad, dtypes.string)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out.reshape((*shape, width))
