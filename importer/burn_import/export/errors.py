"""Errors and notes of the export."""

from __future__ import annotations

from dataclasses import dataclass


class ExportError(ValueError):
    """A module, or an argument, that cannot be exported; the message names the line."""


class VerificationError(ExportError):
    """The exported file computes other values than the module."""


@dataclass(frozen=True)
class Source:
    """Where the module calls a primitive: its path of attributes, file and line."""

    path: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else "an unknown line"
        return f"{where} (in {self.path})" if self.path else where
