"""Finds speech in a WAV file, frame by frame as it would come from a microphone.

``python examples/voice/run.py`` computes a recording and a detector of loudness to try
it with. With Silero's network and a recording of yours (16 kHz):

    python models/fetch.py silero-vad-op15
    python examples/voice/run.py --model models/.cache/silero-vad-op15.onnx talk.wav

It prints when somebody speaks, and draws ``generated/voice.png``. It needs Matplotlib.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import burn
from burn.data import read_wav
from burn_import import ModelGen, Options

HERE = Path(__file__).parent
OUT = HERE / "generated"
RATE, FRAME, CONTEXT = 16000, 512, 64
THRESHOLD, SHORTEST_PAUSE = 0.5, 0.2

Samples = NDArray[np.float32]


class Detector:
    """A generated network with its state, called with one frame after another."""

    def __init__(self, model: Path) -> None:
        options = Options(class_name="Voice")
        ModelGen().input(str(model)).out_dir(str(OUT)).options(
            options
        ).run_from_script()
        sys.path.insert(0, str(OUT))
        self.net = burn.compile(import_module(model.stem).Voice.load())
        self.is_silero = "silero" in model.stem
        shape = (2, 1, 128) if self.is_silero else (1, 1)
        self.state = burn.tensor(np.zeros(shape, np.float32))
        self.past = np.zeros(CONTEXT, np.float32)

    def __call__(self, frame: Samples) -> float:
        """Return the probability that somebody speaks in a frame, float32[512]."""
        if self.is_silero:  # it also hears the end of the frame before
            sound = np.concatenate([self.past, frame])
            self.past = frame[-CONTEXT:]
            extra: tuple[Any, ...] = (burn.tensor(np.int64(RATE)),)
        else:
            sound, extra = frame, ()
        answer, self.state = self.net(burn.tensor(sound[None]), self.state, *extra)
        return float(answer.item())


def spoken_parts(probabilities: list[float]) -> list[tuple[float, float]]:
    """Return starts and ends of speech in seconds; short pauses belong to it."""
    parts: list[tuple[float, float]] = []
    for number, probability in enumerate(probabilities):
        start, end = number * FRAME / RATE, (number + 1) * FRAME / RATE
        if probability < THRESHOLD:
            continue
        if parts and start - parts[-1][1] < SHORTEST_PAUSE:
            parts[-1] = parts[-1][0], end
        else:
            parts.append((start, end))
    return parts


def draw(
    path: Path, samples: Samples, values: list[float], parts: list[tuple[float, float]]
) -> None:
    """Draw the sound, the probability of speech, and the parts that are speech."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(len(samples)) / RATE, samples, color="#9aa7b4", linewidth=0.5)
    frames = (np.arange(len(values)) + 0.5) * FRAME / RATE
    axes.plot(frames, values, color="#c2410c", label="probability of speech")
    for start, end in parts:
        axes.axvspan(start, end, color="#fdba74", alpha=0.35, linewidth=0)
    axes.set(xlabel="seconds", xlim=(0, len(samples) / RATE), ylim=(-1.05, 1.05))
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def find_speech(model: Path, recording: Path) -> list[tuple[float, float]]:
    """Return when somebody speaks; print and draw it."""
    audio = read_wav(recording)
    if audio.rate != RATE:
        raise SystemExit(f"{recording}: expected {RATE} Hz, got {audio.rate}")
    samples = np.ascontiguousarray(audio.samples.mean(0), np.float32)
    detector = Detector(model)
    starts = range(0, len(samples) - FRAME + 1, FRAME)
    values = [detector(samples[start : start + FRAME]) for start in starts]
    parts = spoken_parts(values)
    for start, end in parts:
        print(f"speech from {start:5.2f} s to {end:5.2f} s")
    draw(OUT / "voice.png", samples, values, parts)
    return parts


def main(arguments: list[str] | None = None) -> list[tuple[float, float]]:
    """Return when somebody speaks, by the command line."""
    parser = argparse.ArgumentParser(description="Finds speech in a WAV file.")
    parser.add_argument("recording", type=Path, nargs="?")
    parser.add_argument("--model", type=Path)
    given = parser.parse_args(arguments)
    OUT.mkdir(exist_ok=True)
    sys.path.insert(0, str(HERE))
    demo = import_module("recording")
    if given.recording is None:
        demo.write_recording(OUT / "recording.wav")
    if given.model is None:
        demo.write_model(OUT / "loudness.onnx")
    model = given.model or OUT / "loudness.onnx"
    return find_speech(model, given.recording or OUT / "recording.wav")


if __name__ == "__main__":
    main()
