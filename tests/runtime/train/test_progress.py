"""The lines, bars and summary that a learner prints, and the metrics of a summary."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from burn import train
from burn.train.progress import BarLogger, LineLogger, create_progress_logger
from burn.train.summary import summarize_history
from tests.runtime.train.test_learner import Shuffled, learner

HISTORY = [
    {"train/loss": 2.0, "valid/accuracy": math.nan},
    {"train/loss": 0.5, "valid/accuracy": 0.25},
    {"train/loss": 0.5, "valid/accuracy": 0.75},
]


class Messages(train.Logger):
    """Keeps the messages of a learner."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def log_message(self, message: str) -> None:
        self.messages.append(message)


def test_a_summary_has_extremes_with_their_epochs() -> None:
    summary = summarize_history(HISTORY)
    assert summary.epochs == 3
    assert summary.metrics == (
        train.MetricSummary("train/loss", 0.5, 2, 2.0, 1, 0.5),
        train.MetricSummary("valid/accuracy", 0.25, 2, 0.75, 3, 0.75),
    )
    assert str(summary).splitlines() == [
        "3 epochs",
        "metric           min  epoch   max  epoch  last",
        "train/loss       0.5      2     2      1   0.5",
        "valid/accuracy  0.25      2  0.75      3  0.75",
    ]
    (row,) = summarize_history([{"loss": math.nan}]).metrics
    assert math.isnan(row.minimum)
    assert row.minimum_epoch is row.maximum_epoch is None


def test_a_resumed_run_prints_the_summary_of_all_epochs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner(tmp_path).fit(Shuffled(), epochs=1)
    result = learner(tmp_path).fit(Shuffled(), epochs=3, resume=True)
    printed = capsys.readouterr().out
    assert printed.endswith(f"{result.summary()}\n")
    assert result.summary().epochs == 3
    learner(tmp_path).fit(Shuffled(), epochs=3, resume=True)
    assert capsys.readouterr().out == ""  # no epoch was left to do


def test_messages_name_checkpoints_and_early_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = Messages()
    options: dict[str, Any] = {"loggers": [messages]}
    options["checkpoints"] = train.KeepBest("train/lr", "max")
    options["stop"] = train.Patience(2, "train/lr", mode="max")
    learner(tmp_path, **options).fit(Shuffled(), epochs=9)
    assert messages.messages == [
        "epoch 1: kept checkpoints of epochs 1",
        "epoch 2: kept checkpoints of epochs 1, 2",
        "epoch 3: kept checkpoints of epochs 1, 3",
        "ended early: no better train/lr for 2 epochs",
    ]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["epoch"] * 3
    assert lines[3:5] == [messages.messages[-1], "3 epochs"]


def test_output_that_is_no_terminal_gets_lines() -> None:
    assert type(create_progress_logger()) is LineLogger


@pytest.mark.parametrize(
    ("logger", "module", "extra"),
    [
        (train.Dashboard, "textual", "tui"),
        (train.Dashboard, "textual_plotext", "tui"),
        (BarLogger, "rich.progress", "progress"),
    ],
)
def test_a_missing_library_is_named(
    logger: type[LineLogger], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if module == "textual_plotext":
        pytest.importorskip("textual")
    monkeypatch.setitem(sys.modules, module, None)
    name = module.partition(".")[0]
    message = rf"{logger.__name__} needs {name}: pip install .*\[{extra}\]"
    with pytest.raises(ImportError, match=message):
        logger()
