"""The examples of scikit-learn, of a checkpoint and of an operator."""

from typing import Any

import pytest


@pytest.fixture
def converter() -> None:
    """Skip a test without scikit-learn or its converter, before the example loads."""
    pytest.importorskip("sklearn")
    pytest.importorskip("skl2onnx")


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
