"""Numbers that source writes as something else: as what a constructor was given."""

from __future__ import annotations


class GivenInt(int):
    """A number that is written as ``text``."""

    text: str

    def __new__(cls, value: int, text: str) -> GivenInt:
        made = super().__new__(cls, value)
        made.text = text
        return made


class GivenFloat(float):
    """A number that is written as ``text``."""

    text: str

    def __new__(cls, value: float, text: str) -> GivenFloat:
        made = super().__new__(cls, value)
        made.text = text
        return made


Given = GivenInt | GivenFloat
