"""Names the kind of files by what is in them, whatever their names are.

``python examples/filetype/run.py FILE...`` uses a small network that learns from the
files of this repository. With the network of Magika, and ``config.min.json`` from the
folder of Magika's repository that the network is in:

    python models/fetch.py magika
    python examples/filetype/run.py --model models/.cache/magika.onnx \\
        --config config.min.json FILE...

It writes ``generated/`` beside itself.
"""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import burn
from burn_import import ModelGen, Options

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = HERE / "generated"
BLOCK, LENGTH, PADDING = 4096, 1024, 256
#: Folders whose files the small network learns from.
LEARNT = ("docs", "importer", "models", "runtime", "tests/golden")


def tokens(path: Path) -> NDArray[np.int32]:
    """Return int32[2048]: the first and the last 1024 bytes, without white space."""
    with path.open("rb") as file:
        start = file.read(BLOCK).lstrip()[:LENGTH]
        file.seek(max(0, path.stat().st_size - BLOCK))
        end = file.read(BLOCK).rstrip()[-LENGTH:]
    row = np.full(2 * LENGTH, PADDING, np.int32)
    row[: len(start)] = np.frombuffer(start, np.uint8)
    row[2 * LENGTH - len(end) :] = np.frombuffer(end, np.uint8)
    return row


class Classifier:
    """A generated network with the names of its outputs."""

    def __init__(self, model: Path, config: Path) -> None:
        options = Options(class_name="Kinds")
        ModelGen().input(str(model)).out_dir(str(OUT)).options(
            options
        ).run_from_script()
        sys.path.insert(0, str(OUT))
        self.network = burn.compile(import_module(model.stem).Kinds.load())
        settings: dict[str, Any] = json.loads(config.read_text("utf-8"))
        self.labels: list[str] = settings["target_labels_space"]
        self.thresholds: dict[str, float] = settings["thresholds"]

    def __call__(self, path: Path) -> tuple[str, float]:
        """Return the kind of a file, or "unknown", and its probability."""
        row = self.network(burn.tensor(tokens(path)[None])).numpy()[0]
        if len(row) != len(self.labels):
            message = f"expected {len(row)} labels, got {len(self.labels)}"
            raise SystemExit(f"the configuration is of another network: {message}")
        label, sure = self.labels[int(row.argmax())], float(row.max())
        return (label if sure >= self.thresholds.get(label, 0.5) else "unknown"), sure


def small_network() -> Classifier:
    """Return a network that learns from this repository."""
    sys.path.insert(0, str(HERE))
    bayes = import_module("bayes")
    OUT.mkdir(exist_ok=True)
    files = [
        path
        for folder in LEARNT
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in bayes.KINDS and path.stat().st_size > 100
    ]
    model, config = OUT / "bytes_bayes.onnx", OUT / "config.json"
    bayes.write_model(model, config, files, tokens)
    return Classifier(model, config)


def main(arguments: list[str] | None = None) -> dict[str, str]:
    """Return the kind of each file of the command line; print it."""
    parser = argparse.ArgumentParser(description="Names the kind of files.")
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--config", type=Path)
    given = parser.parse_args(arguments)
    if (given.model is None) != (given.config is None):
        parser.error("--model needs --config, and the other way round")
    classify = Classifier(given.model, given.config) if given.model else small_network()
    files = given.files or sorted(path for path in ROOT.iterdir() if path.is_file())
    kinds = {}
    for path in (path for path in files if path.stat().st_size):
        kinds[str(path)], sure = classify(path)
        print(f"{kinds[str(path)]:<12} {sure:4.0%}  {path}")
    return kinds


if __name__ == "__main__":
    main()
