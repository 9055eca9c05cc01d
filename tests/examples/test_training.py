"""The examples that train reach their accuracies."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burn.record import open_record
from tests.runtime.distributed.test_distributed import start
from tests.test_house import ROOT


@pytest.mark.parametrize(
    "example", ["finetune", "custom_loop", "learner", "dashboard"], indirect=True
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
    example: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "PRETRAINING", 100)
    monkeypatch.setattr(example, "ADAPTATION", 70)
    values = example.main()
    assert values["share"] < 0.02
    assert values["after"] < values["before"] - 0.1
    assert values["accuracy after"] > values["accuracy before"]
    assert "accuracy" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("example", ["distil"], indirect=True)
def test_a_distilled_network_is_better_than_one_of_few_labels(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = example.main()
    assert shares["distilled"] >= 0.96
    assert shares["labels"] < shares["distilled"] < shares["large"] + 0.005
    assert "distilled" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("example", ["quantize"], indirect=True)
def test_training_with_rounded_weights_is_better_than_rounding_after_it(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = example.main()
    assert shares["trained"] >= 0.98
    assert shares["rounded"] < shares["trained"] <= shares["float32"] + 0.005
    assert "2 bits" in capsys.readouterr().out.splitlines()[-1]
    graph = onnx.load(example.OUT / "rounded.onnx").graph
    operators = [node.op_type for node in graph.node]
    assert operators.count("QuantizeLinear") == operators.count("DequantizeLinear") == 3
    weights = open_record(example.OUT / "rounded.safetensors")["block.conv.weight"]
    rows = np.asarray(weights).reshape(32, -1)
    assert max(len(set(np.abs(row).tolist())) for row in rows) == 2  # 0 and the scale


@pytest.mark.parametrize("example", ["data_parallel"], indirect=True)
def test_one_process_trains_in_data_parallel(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mpi4py")
    assert example.main() >= 0.97
    assert "1 processes" in capsys.readouterr().out


@pytest.mark.thorough
def test_two_processes_share_the_digits(tmp_path: Path) -> None:
    path = tmp_path / "examples" / "data_parallel" / "run.py"
    path.parent.mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "data_parallel" / "run.py", path)
    shutil.copytree(ROOT / "models" / "digits", tmp_path / "models" / "digits")
    process = start(2, str(path))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    last = output.splitlines()[-1]
    assert last.startswith("epoch 2, 2 processes:")
    assert float(last.split()[-1].rstrip("%")) >= 97
