"""Regular expressions of RE2 compared with Python's, and their time."""

import random
import re
import sys

import numpy as np
import pytest

import burn
from burn import ops
from burn.ops.regex import Regex, compiled
from tests.pace import within

PATTERNS = [
    r"a*b+c?",
    r"(?:ab|a)(c|bcd)*",
    r"[a-c]{2,3}\d*",
    r"\w+@\w+\.\w+",
    r"(?i)AbC[d-f]*",
    r"^a.c$",
    r"\bab\b.*",
    r"[^ab]+",
    r"(a|b)*abb",
    r"(a{1,2}){2}",
    r"x|",
    r"[\]a-]+",
    r"(?s).*",
    r".*",
    r"a??b",
    r"(?P<name>a)b",
    r"\x61b",
    r"(?:a|)*b",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_whole_texts_match_as_python_says(pattern: str) -> None:
    ours, theirs = Regex(pattern), re.compile(pattern, re.ASCII)
    rng = random.Random(7)
    for _ in range(300):
        letters = "abc" if rng.random() < 0.7 else "abcdABC@. 1\n-]x"
        text = "".join(rng.choice(letters) for _ in range(rng.randint(0, 7)))
        assert ours.matches(text) == bool(theirs.fullmatch(text)), text


def test_the_longest_match_is_found() -> None:
    assert list(compiled("a|ab|abc").spans("xabcab")) == [(1, 4), (4, 6)]


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+b", r"(a|a)*b", r"(a|aa)+b", r"(.*)*x"]
    + ["(" * 5000 + "a" + ")*" * 5000 + "b", "a?" * 10_000 + "a" * 10_000 + "b"],
    ids=range(6),
)
def test_no_text_takes_long(pattern: str) -> None:
    """Python's own ``re`` takes 2**n steps for these."""
    with within(5):
        assert not Regex(pattern).matches("a" * 20_000)


@pytest.mark.parametrize(
    "pattern",
    ["a**", "(a", "a)", "[a", r"\1", "(?=a)", "a{1001}", "((a{100}){100}){100}"]
    + ["*a", r"\p{Elvish}", "\ud800", r"\pL" * 5000, "a" * 100_001],
    ids=range(13),
)
def test_what_is_no_pattern_of_re2_is_refused(pattern: str) -> None:
    with (
        within(2),
        pytest.raises(ValueError, match="expected a regular expression") as caught,
    ):
        Regex(pattern)
    assert len(str(caught.value)) < 300 and str(caught.value).isascii()


def test_classes_of_unicode() -> None:
    greek = compiled(r"\p{Greek}+")
    assert greek.matches("\u03b1\u03b2") and not greek.matches("ab")
    assert list(greek.spans("\xe9\u03b1\u03b2 \u03b3")) == [(1, 3), (4, 5)]


def test_a_match_needs_google_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    compiled.cache_clear()
    message = r"google-re2.*pip install 'burn-runtime\[text\]'"
    words = burn.tensor(np.array(["a", "b"], object))
    with pytest.raises(ImportError, match=message):
        ops.regex_full_match(words, pattern="a")
    with pytest.raises(ImportError, match=message):
        ops.tokenize(words, separators=(" ",))
    assert ops.tokenize(words).tolist() == [["a"], ["b"]]
