"""Source that belongs to Burn and is no call of a primitive."""

from __future__ import annotations


class BurnSource:
    """How stored arrays are read and replaced; other targets have subclasses."""

    def __init__(self) -> None:
        #: What the source must import.
        self.modules: set[str] = set()

    @staticmethod
    def stored_value(attribute: str) -> str:
        """The source that reads a stored array as a tensor."""
        return f"{attribute}.value"

    @staticmethod
    def replacement(attribute: str, value: str) -> str:
        """The statement that gives a stored array another value."""
        return f"{attribute}.set({value})"

    @staticmethod
    def one_number(shape: tuple[int, ...], value: int) -> str:
        """The source of an int64 tensor of one element."""
        return f"ops.full({shape}, value={value})"

    def gradient(self, function: str, inputs: str, others: str) -> str:
        """The source of the derivatives of a local function by its first inputs."""
        self.modules.add("ops")
        behind = f", [{others}]" if others else ""
        return f"ops.gradient({function}, [{inputs}]{behind})"
