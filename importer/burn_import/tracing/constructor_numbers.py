"""Numbers that are emitted as the name of a constructor argument."""

from __future__ import annotations


class GivenInt(int):
    """An integer that is emitted as ``text``."""

    text: str

    def __new__(cls, value: int, text: str) -> GivenInt:
        number = super().__new__(cls, value)
        number.text = text
        return number


class GivenFloat(float):
    """A float that is emitted as ``text``."""

    text: str

    def __new__(cls, value: float, text: str) -> GivenFloat:
        number = super().__new__(cls, value)
        number.text = text
        return number


class GivenExtent(str):
    """The name of a dimension that is emitted as it is, and read from no value."""

    __slots__ = ()


Given = GivenInt | GivenFloat
