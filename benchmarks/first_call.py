"""Measures the first calls of compiled models, beside onnxruntime's sessions.

    python -m benchmarks.first_call [FOLDER ...] [--only NAME[,NAME]] [--rounds 5]
                                    [--small] [--cache warm] [--threads 1] [--profile]

The models are those of ``benchmarks.cpu``, each in new processes that take turns;
``--small`` chooses two large ones and twenty small ones of the zoo. The
stages of ours are: import of burn, load (the module and its weights), first call
(recording and binding), and second call (the first run of the plan); those of
onnxruntime are import, session, first and second run. The ratio is the sum of our
stages by that of its: below 1 we are quicker; the last column is our first call by its
session. Each number is the least of all rounds.

With a ``warm`` cache the machine code of generated kernels is on disk, with a ``cold``
one each process compiles it. ``--profile`` prints the functions in which our process
spends its time, instead of the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.cases import ROOT, SOURCES, print_table
from benchmarks.cpu import Model, models, written

HEAD = (
    *("model", "import s", "load", "first call", "second call"),
    *("onnxruntime import s", "session", "first run", "second run"),
    *("ratio", "call by session"),
)
MODULE = "benchmarks.first_call_worker"
#: Two large models, and twenty small ones of the zoo.
SMALL = (
    *("resnet50 b1", "bert_base", "mobilenet_v2 b1", "opt_mnist", "magika", "dtln_2"),
    *("silero_vad_16k", "rfb_320", "yunet", "bert.ts-op17", "qwen3.ts-op17"),
    *("convnext.ts-op11", "whisper_encoder.ts-op17", "t5_encoder.ts-op17", "nms_yolo"),
    *("swin.ts-op13", "segformer.ts-op14", "wav2vec2_ctc.ts-op14", "gpt2.ts-op17"),
    *("detr.ts-op14", "mamba.ts-op14", "gru_lm.ts-op17"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measures first calls.")
    parser.add_argument("folders", nargs="*", help="folders with more .onnx files")
    parser.add_argument("--only", default="", help="parts of the names of models")
    parser.add_argument("--small", action="store_true", help="large and small ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", choices=("warm", "cold"), default="warm")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processor", action="store_true", help="processor time")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        if options.profile:
            for model in chosen(Path(folder), options):
                print(f"{model.name}\n{profiled(model, Path(folder), options)}")
        else:
            print_table(HEAD, rows(Path(folder), options))


def chosen(folder: Path, options: Any) -> Iterator[Model]:
    """The models whose names have one of the parts in them."""
    for part in SMALL if options.small else options.only.split(","):
        yield from models(folder, options.folders, part)


def rows(folder: Path, options: Any) -> Iterator[list[str]]:
    """The rows, and the geometric means of both ratios."""
    ratios: list[tuple[float, float]] = []
    for model in chosen(folder, options):
        ours, theirs = measured(model, folder, options)
        ratio = (sum(ours) / sum(theirs), ours[2] / theirs[1])
        ratios.append(ratio)
        numbers = (*ours, *theirs)
        yield [model.name, *(f"{n:.3f}" for n in numbers), *(f"{r:.2f}" for r in ratio)]
    means = [
        exp(sum(map(log, each)) / len(ratios)) for each in zip(*ratios, strict=True)
    ]
    yield ["geometric mean", *[""] * 8, *(f"{mean:.2f}" for mean in means)]


def measured(
    model: Model, folder: Path, options: Any
) -> tuple[list[float], list[float]]:
    """The least seconds of each stage, ours and onnxruntime's."""
    given = prepared(model, folder)
    times: dict[str, list[list[float]]] = {"ours": [], "onnxruntime": []}
    for turn in range(options.rounds + 1):
        for engine, results in times.items():
            output = child(engine, given, cache(folder, options, turn), options)
            if turn:  # the first fills the cache, and the bytecode's
                results.append(json.loads(output))
    ours, theirs = (
        [min(each) for each in zip(*r, strict=True)] for r in times.values()
    )
    return ours, theirs


def prepared(model: Model, folder: Path) -> dict[str, tuple[str, ...]]:
    """The arguments of the child of each engine."""
    imported, module, inputs = written(model, folder / model.path.stem)
    return {
        "ours": (str(module), imported.class_name, str(inputs)),
        "onnxruntime": (str(model.path), "", str(inputs)),
    }


def cache(folder: Path, options: Any, turn: int) -> Path:
    """The folder of kernels for a turn, a new one if the cache is cold."""
    return folder / ("kernels" if options.cache == "warm" else f"kernels-{turn}")


def child(
    engine: str, given: dict[str, tuple[str, ...]], kernels: Path, options: Any
) -> str:
    """Return the output of a process of an engine."""
    paths = [str(ROOT), *(str(ROOT / source) for source in SOURCES)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment[variable] = str(options.threads)
    # Without its bytecode a child would measure Python's own compiler.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    python = [sys.executable, "-X", f"pycache_prefix={kernels.parent / 'bytecode'}"]
    clock = "processor" if options.processor else "wall"
    arguments = [*given[engine.split("-")[0]], str(kernels), str(options.threads)]
    return subprocess.run(
        [*python, "-m", MODULE, engine, *arguments, clock],
        env=environment,
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout


def profiled(model: Model, folder: Path, options: Any) -> str:
    """The functions of our process that take longest."""
    given = prepared(model, folder)
    child("ours", given, cache(folder, options, 0), options)
    kernels = cache(folder, options, 1)
    text: str = json.loads(child("ours-profile", given, kernels, options))
    return text


if __name__ == "__main__":
    main()
