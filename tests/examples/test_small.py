"""The examples of scikit-learn, a checkpoint, an operator and text."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.test_house import ROOT


@pytest.fixture
def converter() -> None:
    """Skip a test without scikit-learn or its converter, before the example loads."""
    pytest.importorskip("sklearn")
    pytest.importorskip("skl2onnx")


@pytest.mark.thorough
@pytest.mark.usefixtures("converter")
@pytest.mark.parametrize("example", ["tabular"], indirect=True)
def test_a_pipeline_gives_the_same_probabilities(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    result = example.main()
    assert result["difference"] < 1e-6
    assert result["right"] > 0.9
    assert "named correctly" in capsys.readouterr().out


@pytest.mark.parametrize("example", ["weights"], indirect=True)
def test_a_checkpoint_is_loaded_under_other_names(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    right, parity = example.main()
    assert right == 446
    assert parity >= 446
    lines = capsys.readouterr().out.splitlines()
    assert "12 applied, 2 skipped, 1 missing" in lines


@pytest.mark.thorough
@pytest.mark.parametrize("example", ["generate"], indirect=True)
def test_text_is_the_same_with_a_cache_and_without(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = example.main(["The ", "--steps", "30"])
    assert len(texts["cache"]) == 128 - len("The ")
    assert texts["cache"] == texts["no cache"]
    assert " characters a second" in capsys.readouterr().out
    example.main(["The ", "--steps", "30"])
    assert "training" not in capsys.readouterr().out  # the weights were kept
    with pytest.raises(SystemExit):
        example.main(["x" * 128])


@pytest.mark.thorough
def test_an_operator_of_its_own_is_trained(tmp_path: Path) -> None:
    """Run in a process of its own: an operator is declared once in each."""
    pytest.importorskip("matplotlib")
    folder = tmp_path / "operator"
    shutil.copytree(
        ROOT / "examples" / "operator",
        folder,
        ignore=shutil.ignore_patterns("generated", "__pycache__"),
    )
    answer = subprocess.run(
        [sys.executable, "run.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    errors = {
        line.split()[0]: float(line.split()[-1]) for line in answer.stdout.splitlines()
    }
    assert errors["Snake"] < 0.5 < 1.5 < errors["Relu"]
    source = (folder / "generated" / "snake_network.py").read_text("utf-8")
    assert "ops.sin(" in source and "snake_operator" not in source
    assert (folder / "generated" / "operator.png").is_file()
