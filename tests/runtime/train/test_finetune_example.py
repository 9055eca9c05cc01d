"""The example that fine-tunes the digits classifier reaches its accuracy."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.test_house import ROOT


def test_two_epochs_reach_98_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ROOT / "examples" / "finetune" / "run.py"
    spec = importlib.util.spec_from_file_location("finetune_example", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "OUT", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # and sys.path is restored
    monkeypatch.delitem(sys.modules, "digits", raising=False)
    assert example.main() >= 0.98
    assert "epoch 2: loss" in capsys.readouterr().out
    assert (tmp_path / "tuned.safetensors").is_file()
