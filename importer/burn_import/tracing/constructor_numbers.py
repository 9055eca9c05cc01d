"""Numbers that are emitted as the name of a constructor argument."""

from __future__ import annotations


class ParameterInt(int):
    """An integer that is emitted as ``text``."""

    text: str

    def __new__(cls, value: int, text: str) -> ParameterInt:
        number = super().__new__(cls, value)
        number.text = text
        return number


class ParameterFloat(float):
    """A float that is emitted as ``text``."""

    text: str

    def __new__(cls, value: float, text: str) -> ParameterFloat:
        number = super().__new__(cls, value)
        number.text = text
        return number


class ParameterExtent(str):
    """The name of a dimension that is emitted as it is, and read from no value."""

    __slots__ = ()


ParameterNumber = ParameterInt | ParameterFloat
