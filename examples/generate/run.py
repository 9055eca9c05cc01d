"""Writes text character by character, with a cache of keys and values.

    python examples/generate/run.py "The module "

The first run trains the small model of ``writer.py`` on the manual, which takes about a
minute, and keeps the weights in ``generated/``. The text is printed while it is made.
The last lines compare the speed with that without the cache.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import burn
from burn import nn, ops
from burn.generation import Decoder

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = HERE / "generated"
CAPACITY, TEMPERATURE = 128, 0.5
TABLES = ("aten", "benchmarks", "coverage", "operators")

sys.path.insert(0, str(HERE))


def as_numbers(text: str) -> NDArray[np.int64]:
    """Return the ASCII characters of a text as int64[length]."""
    return np.frombuffer(text.encode("ascii", "ignore"), np.uint8).astype(np.int64)


def read_manual() -> NDArray[np.int64]:
    """Return the pages that are not tables."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    texts = [path.read_text("utf-8") for path in pages if path.stem not in TABLES]
    return as_numbers("\n".join(texts))


def load_model(steps: int) -> Any:
    """Return the trained model; train it if that was not done."""
    writer = import_module("writer")
    weights = OUT / "writer.safetensors"
    if not weights.is_file():
        OUT.mkdir(exist_ok=True)
        print(f"training for {steps} steps ...")
        loss = writer.write_weights(weights, read_manual(), steps)
        print(f"loss of the next character: {loss:.2f}")
    return writer.Writer().load_weights(weights)


def stream(model: Any, prompt: str, seed: int | None) -> Iterator[str]:
    """Yield characters until the cache is full: random ones, or the likeliest."""
    decoder = Decoder(model, capacity=CAPACITY)
    draw = nn.Multinomial(seed=seed)

    def sampled(logits: burn.Tensor) -> burn.Tensor:
        return draw(logits / TEMPERATURE)[:, 0].cast(burn.int64)

    def likeliest(logits: burn.Tensor) -> burn.Tensor:
        return ops.argmax(logits, axis=-1)

    numbers = burn.tensor(as_numbers(prompt)[None])
    count = CAPACITY - numbers.shape[1]
    select = likeliest if seed is None else sampled
    for token in decoder.generate(numbers, count, select=select):
        yield chr(token[0])


def stream_without_cache(model: Any, prompt: str, count: int) -> Iterator[str]:
    """Yield the likeliest characters; the whole text is read for each."""
    writer = import_module("writer")
    text = as_numbers(prompt)
    for _ in range(count):
        inputs = burn.tensor(text[None]), *writer.empty_inputs(1, len(text))
        number = model(*inputs)["logits"].numpy()[0, -1].argmax()
        text = np.append(text, number)
        yield chr(number)


def timed(characters: Iterator[str]) -> tuple[str, float]:
    """Print characters as they come; return them, and seconds for each."""
    start = time.perf_counter()
    text = ""
    for character in characters:
        print(character, end="", flush=True)
        text += character
    print()
    return text, (time.perf_counter() - start) / len(text)


def main(arguments: list[str] | None = None) -> dict[str, str]:
    """Return the likeliest text with and without the cache; print a random one, too."""
    parser = argparse.ArgumentParser(description="Writes text.")
    parser.add_argument("prompt", nargs="?", default="The module ")
    parser.add_argument("--steps", type=int, default=400, help="of training")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if not 0 < len(as_numbers(given.prompt)) < CAPACITY:
        parser.error(f"expected 1 to {CAPACITY - 1} ASCII characters")
    model = load_model(given.steps)
    print(given.prompt, end="")
    timed(stream(model, given.prompt, given.seed))
    texts, seconds = {}, {}
    texts["cache"], seconds["cache"] = timed(stream(model, given.prompt, None))
    whole = stream_without_cache(model, given.prompt, len(texts["cache"]))
    texts["no cache"], seconds["no cache"] = timed(whole)
    for name, value in seconds.items():
        print(f"{name:<8} {1 / value:6.0f} characters a second")
    return texts


if __name__ == "__main__":
    main()
