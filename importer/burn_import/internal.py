"""Defects of the importer: an error that says what happened, where, and what helps."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from types import TracebackType

from burn.record import RecordError
from burn_ir.error_context import FAULTS, describe_fault
from burn_ir.errors import ModelError


class InternalError(RuntimeError):
    """The importer failed on a model that it should import, or wrote a wrong module.

    Args:
        what: What happened, on one line.
        where: The module, node or pass that was worked on, "" if that is not known.
        remedy: What to try instead, "" without an idea.
    """

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        text = f"{what}, in {where}" if where else what
        super().__init__(f"{text}; {remedy}" if remedy else text)


class located:  # noqa: N801  a context manager, as ``error_context``
    """Within, errors get a note of what was worked on: ``module 'blocks.0'``."""

    def __init__(self, what: str, name: str) -> None:
        self.what, self.name = what, name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FAULTS) and not isinstance(error, ModelError):
            error.add_note(f"{self.what} {self.name!r}")


class defects:  # noqa: N801
    """Within, what no model should cause becomes an ``InternalError``.

    What is said of the model itself stays as it is (``ModelError``, ``RecordError``).
    """

    def __init__(self, remedy: str = "") -> None:
        self.remedy = remedy

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, InternalError) and not error.remedy:
            raise InternalError(error.what, error.where, self.remedy) from error
        told = isinstance(error, ModelError | RecordError | InternalError)
        if isinstance(error, FAULTS) and not told:
            raise internal(error, self.remedy) from error


def internal(error: BaseException, remedy: str = "") -> InternalError:
    """``error`` with the innermost of its notes and the line that raised it."""
    notes = getattr(error, "__notes__", [])
    what = (
        describe_fault(error) if isinstance(error, Exception) else type(error).__name__
    )
    return InternalError(what + raised_at(error), "".join(notes[:1]), remedy)


def raised_at(error: BaseException) -> str:
    """Where an error was raised: `` (loops/reroll.py:132)``, "" if nowhere."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return ""
    place = Path(frames[-1].filename)
    return f" ({place.parent.name}/{place.name}:{frames[-1].lineno})"
