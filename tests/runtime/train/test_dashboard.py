"""The dashboard in a terminal: what it shows, its keys, and the screen after it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from burn.train import Dashboard
from tests.test_house import ROOT

for name in ("termios", "pyte", "textual", "textual_plotext"):
    pytest.importorskip(name)

from tests.runtime.train.terminal import DEADLINE, Terminal  # noqa: E402

JOB = "tests.runtime.train.dashboard_job"
Start = Callable[[str], Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts the job in a mode."""
    terminals = []

    def start_job(mode: str) -> Terminal:
        terminals.append(Terminal(JOB, str(tmp_path), mode))
        return terminals[-1]

    yield start_job
    for terminal in terminals:
        terminal.close()


def test_it_shows_metrics_by_key_and_leaves_a_summary(
    start: Start, tmp_path: Path
) -> None:
    terminal = start("wait")
    terminal.wait_for("epoch 2/2")
    terminal.wait_for("train batch 3/6")
    terminal.wait_for("loss, epoch 2")
    terminal.wait_for("written to standard error")
    text = terminal.text
    assert terminal.screen.is_alternate
    for expected in ("accuracy", "learning rate", "samples/second", "End training"):
        assert expected in text
    assert "epoch 1: kept checkpoints of epochs 1" in text
    assert "printed [within] an epoch" in text
    assert "printed before training" not in text
    terminal.press(b"\t")
    terminal.wait_for("accuracy, epoch 2")
    terminal.press(b"\x1b[D")  # the arrow to the left
    terminal.wait_for("loss, epoch 2")
    (tmp_path / "go").touch()
    assert terminal.wait() == 0
    lines = [line for line in terminal.text.splitlines() if line]
    assert lines[:4] == [
        "printed before training",
        "printed [within] an epoch",
        "written to standard error",
        "2 epochs",
    ]
    assert lines[4].split() == ["metric", "min", "epoch", "max", "epoch", "last"]
    assert lines[-1] == "printed after training"
    assert terminal.is_restored()


@pytest.mark.parametrize(
    "key", [b"q", pytest.param(b"\x03", marks=pytest.mark.thorough)]
)
def test_a_key_interrupts_training_which_goes_on_later(
    start: Start, tmp_path: Path, key: bytes
) -> None:
    terminal = start("endless")
    terminal.wait_for("loss, epoch")
    terminal.press(key)
    assert terminal.wait() == 128 + signal.SIGINT
    assert terminal.text.rstrip().endswith("KeyboardInterrupt")
    assert "interrupted: wrote interrupted.safetensors" in terminal.text
    assert terminal.is_restored()
    assert (tmp_path / "checkpoint" / "interrupted.safetensors").exists()
    again = start("first")
    again.wait_for("resumed from interrupted.safetensors")


@pytest.mark.thorough
def test_a_second_key_ends_a_batch_that_does_not_end(
    start: Start, tmp_path: Path
) -> None:
    terminal = start("wait")
    terminal.wait_for("train batch 3/6")
    terminal.press(b"q")
    terminal.wait_for("press q again to stop at once")
    terminal.press(b"q")
    assert terminal.wait() == 128 + signal.SIGINT
    assert terminal.is_restored()
    assert not (tmp_path / "checkpoint" / "interrupted.safetensors").exists()


def test_an_error_is_printed_on_the_ordinary_screen(
    start: Start, tmp_path: Path
) -> None:
    terminal = start("error")
    terminal.wait_for("loss, epoch 2")
    (tmp_path / "go").touch()
    assert terminal.wait() == 1
    assert "Traceback (most recent call last)" in terminal.text
    assert terminal.text.rstrip().endswith("ValueError: the batch is damaged")
    assert terminal.is_restored()


@pytest.mark.thorough
def test_training_that_is_killed_leaves_a_usable_terminal(start: Start) -> None:
    terminal = start("wait")
    terminal.wait_for("loss, epoch 2")
    (training,) = _children(terminal.process.pid)
    os.kill(training, signal.SIGKILL)
    assert terminal.wait() == 128 + signal.SIGKILL
    terminal.wait_for("the training process ended and left its dashboard")
    assert "printed [within] an epoch" in terminal.text
    assert terminal.is_restored()


@pytest.mark.thorough
def test_training_goes_on_without_its_dashboard(start: Start, tmp_path: Path) -> None:
    terminal = start("wait")
    terminal.wait_for("loss, epoch 2")
    (training,) = _children(terminal.process.pid)
    (viewer,) = _children(training)
    os.kill(viewer, signal.SIGKILL)
    terminal.wait_until(lambda: _has_ended(viewer), "the end of the dashboard")
    (tmp_path / "go").touch()
    assert terminal.wait() == 0
    text = terminal.text
    assert f"its process ended with status {-signal.SIGKILL}" in text
    assert "epoch 2  train/loss" in text
    assert "printed [within] an epoch" in text
    assert terminal.is_restored()


@pytest.mark.parametrize("status", [0, -9])
def test_lines_that_a_failed_dashboard_may_not_have_shown_are_printed(
    status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    dashboard = Dashboard()
    viewer: Any = SimpleNamespace(status=status, close=lambda: None)
    dashboard._viewer = viewer
    dashboard.print_line("epoch 2  train/loss 0.5")
    assert capsys.readouterr().out == ""
    dashboard.close()
    output = capsys.readouterr()
    assert ("epoch 2  train/loss 0.5" in output.out) == (status != 0)
    assert ("ended with status -9" in output.err) == (status != 0)


def test_the_dashboard_ends_with_its_terminal(tmp_path: Path) -> None:
    """Training that ignores the hangup (``nohup``) goes on without it."""
    terminal = Terminal(JOB, str(tmp_path), "wait", ignores_hangup=True)
    try:
        terminal.wait_for("loss, epoch 2")
        (training,) = _children(terminal.process.pid)
        (viewer,) = _children(training)
        terminal.hang_up()
        _wait_for(lambda: _has_ended(viewer))
        assert not _has_ended(training)
        (tmp_path / "go").touch()
        _wait_for(lambda: _has_ended(training))
    finally:
        terminal.close()


def test_lines_are_printed_where_there_is_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    done = subprocess.run(
        [sys.executable, "-m", JOB, str(tmp_path), "wait"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines() == [
        "Dashboard: standard input and output are no terminal; "
        "printing a line for each epoch",
        "written to standard error",
    ]
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("epoch")] == [
        ["epoch", "1"],
        ["epoch", "2"],
    ]
    assert lines.count("2 epochs") == 1


@pytest.mark.thorough
def test_bars_show_epochs_and_batches(start: Start, tmp_path: Path) -> None:
    pytest.importorskip("rich")
    terminal = start("bars")
    terminal.wait_until(lambda: "/6" in terminal.text, "a bar of batches")
    assert "━" in terminal.text
    assert terminal.wait() == 0
    lines = [line for line in terminal.text.splitlines() if line]
    assert lines[1].startswith("epoch 1  train/loss")
    assert lines[-1] == "printed after training"
    assert "2 epochs" in lines
    assert "━" not in terminal.text
    assert terminal.is_restored()


def _wait_for(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not is_done():
        assert time.monotonic() < end, "expected the process to end"
        time.sleep(0.1)


def _has_ended(process: int) -> bool:
    """Return whether a process has ended, even if its parent does not know it."""
    command = ["ps", "-o", "stat=", "-p", str(process)]
    state = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return not state or state.startswith("Z")


def _children(parent: int) -> list[int]:
    listing = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True
    )
    return [int(line) for line in listing.stdout.split()]
