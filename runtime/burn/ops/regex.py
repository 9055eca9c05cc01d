"""Regular expressions in RE2 syntax, matched by google-re2 in linear time.

Python's ``re`` has another syntax, and its backtracking can take exponential time.
"""

from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

#: The extra that installs google-re2.
EXTRA = "burn-runtime[text]"
#: In characters. RE2 takes seconds to refuse patterns of many megabytes.
MOST_CHARACTERS = 100_000


class Regex:
    """A compiled pattern.

    Raises:
        ValueError: the pattern is not valid in RE2.
        ImportError: google-re2 is not installed.
    """

    def __init__(self, pattern: str) -> None:
        re2 = _re2()
        if len(pattern) > MOST_CHARACTERS:
            raise _invalid(f"one of {len(pattern)} characters")
        options = re2.Options()
        options.log_errors = False
        options.longest_match = True
        options.never_capture = True  # groups cost time, and nothing asks for them
        try:
            self._regex: Any = re2.compile(pattern, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise _invalid(_message(error)) from None

    def matches(self, text: str) -> bool:
        """Return whether the whole of ``text`` matches."""
        return self._regex.fullmatch(text) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each nonempty match, leftmost longest."""
        for match in self._regex.finditer(text):
            start, end = match.span()
            if end > start:
                yield start, end


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Regex:
    """Return the compiled pattern, from a cache."""
    return Regex(pattern)


def is_available() -> bool:
    """Return whether google-re2 is installed."""
    return find_spec("re2") is not None


def _re2() -> Any:
    try:
        import re2
    except ImportError as error:
        raise ImportError(
            "regular expressions need google-re2, which the extra installs: "
            f"pip install '{EXTRA}'"
        ) from error
    return re2


def _invalid(problem: str) -> ValueError:
    return ValueError(f"expected a regular expression of RE2, got {problem}")


def _message(error: Exception) -> str:
    reason = error.args[0]
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else error
    return ascii(str(text)[:200])
