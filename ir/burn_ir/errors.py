"""Errors between a file and a module, with messages that the user can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self


class Undecided(Exception):  # noqa: N818 a missing fact, not a mistake
    """The answer depends on values that are only known at run time."""


class InvalidOperand(ValueError):  # noqa: N818
    """An operand or attribute is invalid; states expected and actual value."""


@dataclass(frozen=True)
class Problem:
    """One problem of one node."""

    message: str
    node: str = ""
    operator: str = ""
    opset: int | None = None
    hint: str = ""

    def __str__(self) -> str:
        where = f"node {self.node!r}" if self.node else ""
        if self.operator:
            opset = f", opset {self.opset}" if self.opset is not None else ""
            where += f" ({self.operator}{opset})"
        text = f"{where}: {self.message}" if where else self.message
        separator = ". " if self.hint[:1].isupper() else "; "
        return f"{text}{separator}{self.hint}" if self.hint else text


class ModelError(ValueError):
    """A model cannot be imported. ``problems`` has all problems, not only the first.

    A text of several lines is several problems. Subclasses determine the exit code
    of the command line.
    """

    def __init__(self, problems: Sequence[Problem] | str, hint: str = "") -> None:
        if isinstance(problems, str):
            lines = problems.split("\n")
            problems = [Problem(line.strip(), hint=hint) for line in lines]
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def in_file(self, name: str) -> Self:
        """Return this error with a file's name in every message without a node."""
        return type(self)(
            [
                p if p.node else replace(p, message=f"{name}: {p.message}")
                for p in self.problems
            ]
        )


class UnreadableFile(ModelError):  # noqa: N818
    """The file cannot be read as a model."""


class UnsupportedModel(ModelError):  # noqa: N818
    """The model uses operators, versions or features that are unsupported."""


class InvalidModel(ModelError):  # noqa: N818
    """The model contradicts the ONNX specification or itself."""
