"""Conversion of a command's exceptions to a report and an exit code."""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from burn_import.cli.report import Report
from burn_import.version import VERSION


class Answer:
    """A converter from exceptions to a report and an exit code."""

    def __init__(self, report: Report, verbose: bool) -> None:
        self.report = report
        self.verbose = verbose
        self.code = 0
        self._created: list[Path] = []

    def make_parent(self, output: Path, *, dry_run: bool = False) -> None:
        """Create the directory of ``output``; an error removes it again if empty.

        Raises:
            OSError: a parent is not a directory, or cannot be created.
        """
        from burn_import.output import make_parent

        self._created += make_parent(output, dry_run=dry_run)

    def __enter__(self) -> Answer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            return True
        for folder in self._created:
            with suppress(OSError):  # it is in use
                folder.rmdir()
        if isinstance(error, click.exceptions.Exit | click.ClickException | SystemExit):
            return False
        if isinstance(error, BrokenPipeError):  # `| head` has read enough; click exits
            return False
        self.code = _code(error)
        failure = _module_failure(error) if self.code == 70 else None
        if failure is not None:
            error, self.code = failure, 2
        if self.code == 130:
            self.report.failure("interrupted", self.code)
        elif self.code == 70:
            self._internal(error)
        else:
            self.report.problems(error, self.code)
        return True

    def _internal(self, error: BaseException) -> None:
        if self.verbose:
            traceback.print_exception(error, file=sys.stderr)
        from burn_import.internal import InternalError, internal

        described = error if isinstance(error, InternalError) else internal(error)
        self.report.failure(
            f"{self.report.model}: internal error: {described}; this is a defect of "
            f"burn-import {VERSION}, please report it with the model"
            + ("" if self.verbose else " and the output of -v"),
            self.code,
        )


def _module_failure(error: BaseException) -> BaseException | None:
    """Return the problem if the user's module raised ``error``, or None."""
    modules: Any = sys.modules.get("burn_import.cli.modules")
    return None if modules is None else modules.module_failure(error)


def _code(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return 130
    from burn.record import RecordError
    from burn_import.output import OutputRefused
    from burn_import.transform import WrongOptions
    from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel

    table: tuple[tuple[type[BaseException], int], ...] = (
        (OutputRefused, 2),
        (WrongOptions, 2),
        *_loaded_error_codes(),
        (UnreadableFile, 3),
        (UnsupportedModel, 4),
        (RecordError, 4),  # a dtype that records cannot hold
        (InvalidModel, 5),
        (OSError, 2),
    )
    return next((code for kind, code in table if isinstance(error, kind)), 70)


def _loaded_error_codes() -> tuple[tuple[type[BaseException], int], ...]:
    """Return the exit codes of exceptions from packages that a command has loaded."""
    rows = (
        ("burn_import.export.errors", "ExportError", 4),
        ("burn.nn.inputs", "InputError", 2),
        ("burn.store.report", "WeightsError", 2),
        ("burn_import.verification.errors", "InputsError", 2),
    )
    return tuple(
        (getattr(sys.modules[module], name), code)
        for module, name, code in rows
        if module in sys.modules
    )
