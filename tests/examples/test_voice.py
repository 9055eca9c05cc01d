"""Speech in a recording is found, by a detector of loudness and by Silero's network."""

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

#: When the voice of the example speaks, in seconds.
SPOKEN = [(0.8, 1.55), (2.6, 3.85), (4.6, 5.35)]


def assert_close(parts: list[tuple[float, float]]) -> None:
    """Compare parts with those that are spoken, as far as frames and echoes allow."""
    assert len(parts) == len(SPOKEN), parts
    assert np.abs(np.array(parts) - SPOKEN).max() < 0.1


@pytest.mark.parametrize("example", ["voice"], indirect=True)
def test_the_demonstration(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert_close(example.main([]))
    assert capsys.readouterr().out.count("speech from") == 3
    assert (example.OUT / "voice.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("example", ["voice"], indirect=True)
def test_silero_hears_the_voice(example: Any, request: pytest.FixtureRequest) -> None:
    zoo: Path = request.config.getoption("--zoo")
    model = zoo / "real" / "silero-vad" / "silero_vad_16k_op15.onnx"
    if not model.is_file():
        pytest.skip("no models (see --zoo): silero-vad not checked")
    assert_close(example.main(["--model", str(model)]))


@pytest.mark.parametrize("example", ["voice"], indirect=True)
def test_another_rate_is_refused(example: Any, tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "slow.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(4000))
    with pytest.raises(SystemExit, match="expected 16000 Hz, got 8000"):
        example.main([str(tmp_path / "slow.wav")])
