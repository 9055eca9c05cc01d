"""Internal errors of the importer, with their cause, location and a remedy."""

from pathlib import Path
from traceback import extract_tb
from types import TracebackType

from burn.record import RecordError
from burn_ir.error_context import FAULTS, describe_fault
from burn_ir.errors import ModelError


class InternalError(RuntimeError):
    """A defect: the importer failed on a valid model or wrote a wrong module.

    Args:
        message: The failure, on one line.
        where: The module, node or pass that was processed, "" if that is not known.
        remedy: A workaround, "" if none is known.
    """

    def __init__(self, message: str, where: str = "", remedy: str = "") -> None:
        self.message, self.where, self.remedy = message, where, remedy
        text = f"{message}, in {where}" if where else message
        super().__init__(f"{text}; {remedy}" if remedy else text)


class located:  # noqa: N801  a context manager, as ``error_context``
    """Context that adds a note such as ``module 'blocks.0'`` to errors."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FAULTS) and not isinstance(error, ModelError):
            error.add_note(f"{self.kind} {self.name!r}")


class defects:  # noqa: N801
    """Context that turns unexpected exceptions into ``InternalError``.

    Errors about the model itself pass unchanged (``ModelError``, ``RecordError``).
    """

    def __init__(self, remedy: str = "") -> None:
        self.remedy = remedy

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, InternalError) and not error.remedy:
            raise InternalError(error.message, error.where, self.remedy) from error
        is_reported = isinstance(error, ModelError | RecordError | InternalError)
        if isinstance(error, FAULTS) and not is_reported:
            raise internal(error, self.remedy) from error


def internal(error: BaseException, remedy: str = "") -> InternalError:
    """Return ``error`` with its innermost note and the line that raised it."""
    notes = getattr(error, "__notes__", [])
    message = (
        describe_fault(error) if isinstance(error, Exception) else type(error).__name__
    )
    return InternalError(message + raised_at(error), "".join(notes[:1]), remedy)


def raised_at(error: BaseException) -> str:
    """Return the place that raised an error: `` (loops/reroll.py:132)``, or ""."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return ""
    file = Path(frames[-1].filename)
    return f" ({file.parent.name}/{file.name}:{frames[-1].lineno})"
