"""The examples that train reach their accuracies."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.test_house import ROOT


@pytest.fixture
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return the program of an example, which writes into ``tmp_path``."""
    path = ROOT / "examples" / request.param / "run.py"
    spec = importlib.util.spec_from_file_location(f"{request.param}_example", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    monkeypatch.setattr(program, "OUT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return program


@pytest.mark.parametrize(
    "example", ["finetune", "custom_loop", "learner"], indirect=True
)
def test_digits_reach_98_percent(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert example.main() >= 0.98
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("epoch 2") for line in lines)
    assert "%" in lines[-1]


@pytest.mark.parametrize("example", ["learner"], indirect=True)
def test_the_learner_goes_on(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "EPOCHS", 1)
    first = example.main()
    assert example.main() == first
    assert (example.OUT / "run" / "checkpoint" / "checkpoint-1.safetensors").is_file()
    assert (example.OUT / "tuned.safetensors").is_file()


@pytest.mark.parametrize("example", ["lora"], indirect=True)
def test_adapters_lower_the_loss_of_held_out_text(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    values = example.main()
    assert values["share"] < 0.02
    assert values["after"] < values["before"] - 0.1
    assert values["accuracy after"] > values["accuracy before"]
    assert "accuracy" in capsys.readouterr().out.splitlines()[-1]
