"""Colors of messages: on a terminal, unless the user does not want them."""

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from burn_import.cli.command import burn_import
from tests.importer.build.test_build_backends import PATHS
from tests.test_house import ROOT

pty = pytest.importorskip("pty", reason="another platform without terminals")
DIGITS = ROOT / "models" / "digits" / "digits.onnx"


def printed(*args: str, **variables: str) -> str:
    """Return what the command prints on a terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ.update(PYTHONPATH=os.pathsep.join(PATHS), **variables)
        os.execv(sys.executable, [sys.executable, "-m", "burn_import", *args])
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # how Linux tells the end
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(terminal)
    os.waitpid(process, 0)
    return b"".join(chunks).decode()


def test_a_terminal_has_colors() -> None:
    text = printed("missing.onnx", TERM="xterm")
    assert "\x1b[31m\x1b[1merror[unreadable]\x1b[0m: cannot read" in text


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colors_are_turned_off(variables: dict[str, str]) -> None:
    text = printed("missing.onnx", **{"TERM": "xterm", **variables})
    assert "error[unreadable]: cannot read" in text and "\x1b[3" not in text


def test_files_have_no_colors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    for args in (["missing.onnx"], [str(DIGITS), "--dry-run"], ["check", "missing.py"]):
        assert "\x1b" not in run(burn_import, args).output


def test_what_is_colored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    assert run(burn_import, [str(DIGITS), "-o", "net.py"]).exit_code == 0
    assert "\x1b[32mok" in run(burn_import, ["check", "net.py"], color=True).output
    Path("net.py").write_text(Path("net.py").read_text() + "# mine\n")
    shown = run(burn_import, ["check", "net.py"], color=True).output
    assert "\x1b[31medited" in shown
    arguments = [str(DIGITS), "-o", "net.py", "--dry-run", "--force"]
    assert "\x1b[31m-# mine" in run(burn_import, arguments, color=True).output
