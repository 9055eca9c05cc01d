"""Errors and notes of the export."""

from dataclasses import dataclass


class ExportError(ValueError):
    """A module or argument that cannot be exported; the message names the line."""


class VerificationError(ExportError):
    """The results of the exported file differ from those of the module."""


@dataclass(frozen=True)
class Source:
    """The origin of a primitive call: its module path, file and line."""

    path: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else "an unknown line"
        return f"{where} (in {self.path})" if self.path else where
