"""The examples that train reach their accuracies."""

from typing import Any

import pytest


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
@pytest.mark.thorough
def test_adapters_lower_the_loss_of_held_out_text(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    values = example.main()
    assert values["share"] < 0.02
    assert values["after"] < values["before"] - 0.1
    assert values["accuracy after"] > values["accuracy before"]
    assert "accuracy" in capsys.readouterr().out.splitlines()[-1]
