"""Regular expressions against Python's, and in linear time."""

import random
import re

import pytest

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


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"(a|a)*b", r"(a|aa)+b", r"(.*)*x"])
def test_no_text_takes_long(pattern: str) -> None:
    """Python's own ``re`` takes 2**n steps for these."""
    with within(5):
        assert not Regex(pattern).matches("a" * 20_000)


@pytest.mark.parametrize(
    "pattern",
    ["a**", "(a", "a)", "[a", r"\1", "(?=a)", "a{1001}", "((a{100}){100}){100}"]
    + ["*a", "(" * 500 + ")" * 500, r"\p{Greek}"],
)
def test_what_is_no_pattern_of_re2_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="expected a regular expression"):
        Regex(pattern)
