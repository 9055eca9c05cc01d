"""Examples of operators on strings."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.ml.features import words
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    generator,
    integers,
)

_TEXTS = ("a b  c", " lead", "x,y,,z", "", "one", "\xe9t\xe9, a", "aa@b.c", "tail ,")


def texts(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Strings in which something divides."""
    flat = generator(draw).integers(0, len(_TEXTS), int(np.prod(shape)))
    out = np.empty(len(flat), object)
    out[:] = [_TEXTS[i] for i in flat]
    return out.reshape(shape)


@case("StringConcat")
def string_concat(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    other = tuple(n if draw(st.booleans()) else 1 for n in shape[1:])
    return Example({}, [words(draw, shape), words(draw, other)], resizable=False)


@case("StringSplit")
def string_split(draw: Draw, version: int) -> Example:
    attrs: dict[str, Any] = {}
    if draw(st.booleans()):
        attrs["delimiter"] = draw(st.sampled_from(["", ",", " ", ", "]))
    if draw(st.booleans()):
        attrs["maxsplit"] = draw(st.integers(1, 2))
    x = draw(st.sampled_from([texts(draw, (2, 3, 2)), texts(draw, (7,))]))
    # onnxruntime finds nothing in an empty string where Python finds one empty part.
    x[x == ""] = "none"
    return Example(attrs, [x], 2)


@case("RegexFullMatch")
def regex_full_match(draw: Draw, version: int) -> Example:
    patterns = [r"[a-z ]+", r"\w+@\w+\.[a-z]{1,3}", r".*,.*", r"(?i)ONE|", r"(a|aa)+.*"]
    return Example(
        {"pattern": draw(st.sampled_from(patterns))}, [texts(draw, extents(draw))]
    )


@case("StringNormalizer")
def string_normalizer(draw: Draw, version: int) -> Example:
    attrs: dict[str, Any] = {
        "case_change_action": draw(st.sampled_from(["NONE", "LOWER", "UPPER"])),
        "is_case_sensitive": draw(st.integers(0, 1)),
        "locale": "C.UTF-8",
    }
    if draw(st.booleans()):
        attrs["stopwords"] = ("HAM", "egg", "Rye")
    count = draw(st.integers(1, 6))
    shape = draw(st.sampled_from([(count,), (1, count)]))
    x = words(draw, shape)
    x = np.where(generator(draw).random(shape) < 0.5, x, np.char.upper(x.astype(str)))
    return Example(attrs, [x.astype(object)])


@case("Tokenizer", domain="com.microsoft")
def tokenizer(draw: Draw, version: int) -> Example:
    shape = draw(st.sampled_from([(4,), (2, 3)]))
    attrs: dict[str, Any] = {"mark": draw(st.integers(0, 1)), "pad_value": "#"}
    kind = draw(st.sampled_from(["characters", "separators", "pattern"]))
    attrs["mincharnum"] = 1 if kind == "characters" else draw(st.integers(1, 2))
    if kind == "pattern":
        attrs["tokenexp"] = draw(st.sampled_from(["[a-z]+", "a|aa|[^a ]+", "[^,]*"]))
    else:
        several = draw(st.sampled_from([(" ",), (",", " "), ("[, ]+",), ("a", ",")]))
        attrs["separators"] = several if kind == "separators" else ("",)
    return Example(attrs, [texts(draw, shape)])


@case("TfIdfVectorizer")
def tfidf_vectorizer(draw: Draw, version: int) -> Example:
    low = draw(st.integers(1, 3))
    attrs: dict[str, Any] = {
        "mode": draw(st.sampled_from(["TF", "IDF", "TFIDF"])),
        "min_gram_length": low,
        "max_gram_length": draw(st.integers(low, 3)),
        "max_skip_count": draw(st.integers(0, 2)),
        "ngram_counts": (0, 3, 9),
        "ngram_indexes": (2, 0, 5, 1, 3, 4, 6, 8),
    }
    pool = (1, 2, 3, 1, 2, 2, 3, 3, 1, 1, 2, 3, 2, 2, 1)
    attrs["weights"] = tuple(0.5 + i for i in range(8))
    shape = draw(st.sampled_from([(8,), (3, 7)]))
    x = integers(draw, shape, 0, 3)
    if draw(st.booleans()):
        attrs["pool_int64s"] = pool
        return Example(attrs, [x.astype(draw(st.sampled_from(["i4", "i8"])))])
    attrs["pool_strings"] = tuple(f"w{i}" for i in pool)
    named = np.empty(4, object)
    named[:] = [f"w{i}" for i in range(4)]
    return Example(attrs, [named[x]])


@case("TfIdf", domain="burn")
def tfidf(draw: Draw, version: int) -> Example:
    x = integers(draw, (3, 6), 0, 3)
    pool, columns = np.array([1, 2, 1, 2, 2, 3]), np.array([1, 0, 3, 2])
    weights = np.array([0.5, 1.5, 2.5, 3.5], np.float32)
    attrs: dict[str, Any] = {"width": 4, "starts": (0, 2), "lengths": (1, 2)}
    attrs |= {"mode": draw(st.sampled_from(["tf", "idf", "tfidf"])), "max_skip": 1}
    fixed = frozenset({1, 2, 3})
    return Example(attrs, [x, pool, columns, weights], always_stored=fixed)
