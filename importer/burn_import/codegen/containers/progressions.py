"""Constructor calls with arithmetic progressions of numbers, as one comprehension."""

import re
from collections.abc import Sequence

#: An integer that is a whole argument, or a whole element of a tuple.
_NUMBER = re.compile(r"(?<=[(\[=, ])-?\d+(?=[,)\]])")


def progression(texts: Sequence[str]) -> str:
    """Return the source of the ``i``-th of ``texts``: ``Layer(64 + 32 * i)``.

    "" if the texts differ in more than integers, or if these are not arithmetic
    progressions.
    """
    rests = {_NUMBER.sub("0", text) for text in texts}
    if len(rests) > 1 or any(" for " in text for text in texts):
        return ""
    numbers = [[int(number) for number in _NUMBER.findall(text)] for text in texts]
    columns = list(zip(*numbers, strict=True))
    if not all(map(_is_even, columns)):
        return ""
    terms = iter([_term(column[0], column[1] - column[0]) for column in columns])
    return _NUMBER.sub(lambda match: next(terms), texts[0])


def longest_run(texts: Sequence[str]) -> tuple[int, str]:
    """Return how many of ``texts``, from the first on, are one run, and its source.

    The source is that of :func:`progression`, or the text itself if all are equal.
    """
    count, source = 1, texts[0]
    while count < len(texts):
        each = progression(texts[: count + 1])
        if texts[count] == texts[0] == source:
            each = source
        if not each:
            break
        count, source = count + 1, each
    return count, source


def _is_even(numbers: Sequence[int]) -> bool:
    """Return whether the numbers are an arithmetic progression."""
    pairs = zip(numbers, numbers[1:], strict=False)
    return len({after - before for before, after in pairs}) == 1


def _term(first: int, step: int) -> str:
    """Return the source of ``first + step * i``."""
    if not step:
        return str(first)
    product = "i" if abs(step) == 1 else f"{abs(step)} * i"
    if first:
        return f"{first} {'-' if step < 0 else '+'} {product}"
    return f"-{product}" if step < 0 else product
