"""Classification and description of errors of exporters and runtimes."""

from __future__ import annotations

import re
from pathlib import Path

CAUSE_LENGTH = 600


def is_refused(error: BaseException) -> bool:
    """Return whether onnxruntime's error is the file's fault, not a missing kernel."""
    names = ("Fail", "InvalidArgument", "InvalidGraph")
    kind = type(error)
    return kind.__module__.startswith("onnxruntime") and kind.__name__ in names


def root_cause(error: BaseException) -> BaseException:
    """Return the error that a chain of errors began with."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def describe_error(error: BaseException) -> str:
    """Return the class and message of an error, and where it was raised, shortened."""
    location = ""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        code = trace.tb_frame.f_code
        location = f" [{Path(code.co_filename).name}:{trace.tb_lineno}]"
    text = re.sub(r"\x1b\[[0-9;]*m", "", f"{type(error).__name__}: {error}")
    if len(text) > CAUSE_LENGTH:
        text = f"{text[:CAUSE_LENGTH]} ..."
    return text + location
