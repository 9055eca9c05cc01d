"""A recording and a detector to try the example with: both are computed."""

import wave
from pathlib import Path

import numpy as np
import onnx.parser
from numpy.typing import NDArray

RATE = 16000
#: Resonances of the mouth in Hz, by vowel.
VOWELS = {"a": (730, 1090, 2440), "i": (270, 2290, 3010), "u": (300, 870, 2240)}
LOUDNESS = """
<ir_version: 10, opset_import: ["": 20]>
loudness (float[batch, 512] input, float[batch, 1] state)
    => (float[batch, 1] output, float[batch, 1] stateN)
    <int64[1] axes = {1}, float tiny = {1e-6}, float quiet = {-6.0},
     float fresh = {0.4}, float keep = {0.6}, float slope = {2.0}>
{
    power = Mul(input, input)
    mean = ReduceMean(power, axes)
    positive = Add(mean, tiny)
    loudness = Log(positive)
    above = Sub(loudness, quiet)
    new = Mul(above, fresh)
    old = Mul(state, keep)
    stateN = Add(new, old)
    logit = Mul(stateN, slope)
    output = Sigmoid(logit)
}
"""
Samples = NDArray[np.float32]


def _syllable(vowel: str, seconds: float, pitch: float) -> Samples:
    """Return pulses of a voice through the resonances of a vowel."""
    time = np.arange(int(seconds * RATE)) / RATE
    turns = np.cumsum(pitch * (1.1 - 0.3 * time / seconds)) / RATE
    sound = np.zeros_like(time)
    for harmonic in range(1, 30):
        frequency = harmonic * pitch
        gain = sum(1 / (1 + ((frequency - f) / 90) ** 2) for f in VOWELS[vowel])
        sound += gain / harmonic**0.5 * np.sin(2 * np.pi * harmonic * turns)
    envelope = np.sin(np.pi * time / seconds) ** 0.5
    scaled: Samples = (sound * envelope / np.abs(sound).max()).astype(np.float32)
    return scaled


def write_recording(path: Path) -> list[tuple[float, float]]:
    """Write a WAV file of a voice in noise; return the seconds in which it speaks."""
    rng = np.random.default_rng(0)
    samples = 0.01 * rng.standard_normal(6 * RATE).astype(np.float32)
    spoken = []
    for start, word in ((0.8, "aiu"), (2.6, "uaiia"), (4.6, "iau")):
        at = int(start * RATE)
        for number, vowel in enumerate(word):
            sound = 0.6 * _syllable(vowel, 0.25, 120 + 10 * (number % 2))
            samples[at : at + len(sound)] += sound
            at += len(sound)
        spoken.append((start, at / RATE))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
    return spoken


def write_model(path: Path) -> None:
    """Write a detector with inputs and outputs like Silero's, which measures loudness.

    Its state is the mean logarithm of the power of the last frames, above a threshold.
    """
    onnx.save(onnx.parser.parse_model(LOUDNESS), path)
