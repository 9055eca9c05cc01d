"""The line that shows that a command is still at work."""

import io
import time
from typing import Any

import pytest

from burn_import.cli import progress as module
from burn_import.cli.progress import progress


class Stream(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


def shown(monkeypatch: Any, is_terminal: bool, seconds: float) -> str:
    """Return what is written beside a task of some seconds."""
    stream = Stream(is_terminal)
    monkeypatch.setattr("sys.stderr", stream)
    with progress("importing a\x1b[2J.onnx"):
        time.sleep(seconds)
    return stream.getvalue()


def test_a_terminal_gets_a_line_that_is_erased(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "DELAY", 0.0)
    text = shown(monkeypatch, True, 0.2)
    assert text.startswith("\rimporting a\\x1b[2J.onnx (0 s)")
    assert text.endswith("\r\x1b[K")


@pytest.mark.parametrize("is_terminal", (False, True))
def test_short_tasks_and_other_streams_get_none(
    monkeypatch: Any, is_terminal: bool
) -> None:
    monkeypatch.setattr(module, "DELAY", 60.0 if is_terminal else 0.0)
    assert shown(monkeypatch, is_terminal, 0.05) == ""


def test_the_line_is_erased_before_an_error_is_shown(monkeypatch: Any) -> None:
    stream = Stream(True)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(module, "DELAY", 0.0)
    with pytest.raises(ValueError, match="broken"), progress("verifying"):
        time.sleep(0.2)
        raise ValueError("broken")
    assert stream.getvalue().endswith("\r\x1b[K")
