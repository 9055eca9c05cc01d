"""Measures inference: generated modules, eager on the CPU, against onnxruntime.

    python -m benchmarks.inference [FOLDER ...] [--only NAME] [--profile]

Both run in one process on the same inputs with the same number of threads, in turns;
the time is the median over the rounds, the ratio onnxruntime's time by ours: above 1 we
are faster. "best" is the ratio of the quickest calls, which says more when other
programs run. A cold start is a new process that loads the model and computes once.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import pstats
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np
import onnxruntime

import burn
from benchmarks.cases import Case, Children, Feeds, cases, feeds, print_table
from burn_import.pipeline import import_model, module_stem, write_model

HEAD = (
    *("model", "ours ms", "onnxruntime ms", "ratio", "best"),
    *("cold ours ms", "cold onnxruntime ms"),
)
COLD = """
import sys, numpy, importlib.util, burn
spec = importlib.util.spec_from_file_location("model", sys.argv[1])
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
with numpy.load(sys.argv[3]) as file:
    inputs = [burn.from_numpy(file[name]) for name in file.files]
getattr(module, sys.argv[2]).load()(*inputs)
"""
COLD_ORT = """
import sys, numpy, onnxruntime
onnxruntime.set_default_logger_severity(4)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
session = onnxruntime.InferenceSession(sys.argv[1], options)
with numpy.load(sys.argv[3]) as file:
    session.run(None, {name: file[name] for name in file.files})
"""
# Threads of both libraries spin for a while after a call, on the other's cores.
PAUSE = 0.05
TURN = 0.1


def main() -> None:
    """Print a table of inference times, or profiles of ours."""
    parser = argparse.ArgumentParser(description="Measures inference.")
    parser.add_argument("folders", nargs="*", help="folders with more .onnx files")
    parser.add_argument("--only", default="", help="part of the names of models")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2, help="of onnxruntime")
    parser.add_argument("--profile", action="store_true", help="where our time goes")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    with TemporaryDirectory() as folder:
        result = cases(options.folders, options.only)
        print_table(HEAD, _rows(result, Path(folder), options))


def _rows(results: list[Case], folder: Path, options: Any) -> Iterator[list[str]]:
    children = Children(folder)
    for case in results:
        session = _session(case, options.threads)
        if session is None:
            yield [case.name, "-", "refused", "-", "-", "-", "-"]
            continue
        given = feeds(case, session)
        path, name = _generate(case, folder)
        ours = _ours(path, name, given)
        theirs = _theirs(session, given)
        _compare(case, ours, theirs)
        if options.profile:
            _profile(ours)
        *pair, best = _interleaved(ours, theirs, options.rounds)
        cold = _cold_starts(case, path, name, given, children)
        yield [
            case.name,
            *(f"{seconds * 1000:.2f}" for seconds in pair),
            f"{pair[1] / pair[0]:.2f}",
            f"{best:.2f}",
            *(f"{seconds * 1000:.0f}" for seconds in cold),
        ]


def _session(case: Case, threads: int) -> Any:
    """A session with the default optimizations; None if onnxruntime refuses."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(case.path, options)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return None


def _generate(case: Case, folder: Path) -> tuple[Path, str]:
    """The file of the generated module, and the name of its class."""
    path = folder / f"{module_stem(case.path)}.py"
    compiled = import_model(case.path)
    write_model(compiled, path, force=True)
    return path, compiled.class_name


def _ours(path: Path, name: str, given: Feeds) -> Callable[[], Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = getattr(module, name).load()
    inputs = [burn.from_numpy(array) for array in given.values()]
    return lambda: model(*inputs)


def _theirs(session: Any, given: Feeds) -> Callable[[], Any]:
    return lambda: session.run(None, given)


def _compare(case: Case, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Raise unless both compute the same: a wrong result may not be quick."""
    results = ours()
    results = results if isinstance(results, tuple) else (results,)
    for got, expected in zip(results, theirs(), strict=True):
        scale = float(np.abs(expected).max(initial=1e-3))
        np.testing.assert_allclose(
            got.numpy(), expected, rtol=1e-3, atol=1e-4 * scale, err_msg=case.name
        )


def _profile(ours: Callable[[], Any]) -> None:
    profile = cProfile.Profile()
    for _ in range(5):
        profile.runcall(ours)
    pstats.Stats(profile).sort_stats("tottime").print_stats(14)


def _interleaved(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int
) -> tuple[float, float, float]:
    """The median time of a call of each, in turns, and the ratio of the quickest."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, result in zip((ours, theirs), times, strict=True):
            sleep(PAUSE)
            call()
            result += _turn(call)
    return median(times[0]), median(times[1]), min(times[1]) / min(times[0])


def _turn(call: Callable[[], Any]) -> list[float]:
    """The times of calls over a tenth of a second, at least one."""
    taken: list[float] = []
    while sum(taken) < TURN:
        start = perf_counter()
        call()
        taken.append(perf_counter() - start)
    return taken


def _cold_starts(
    case: Case, path: Path, name: str, given: Feeds, children: Children
) -> tuple[float, float]:
    inputs = path.with_suffix(".npz")
    # numpy.savez takes names as keywords, so not every name.
    with inputs.open("wb") as file:
        np.savez(file, allow_pickle=False, **given)
    both: tuple[list[float], list[float]] = ([], [])
    sides = ((COLD, str(path)), (COLD_ORT, str(case.path)))
    for _ in range(4):  # the first one makes the bytecode
        for (code, model), result in zip(sides, both, strict=True):
            result.append(children.seconds(code, model, name, str(inputs)))
    return median(both[0][1:]), median(both[1][1:])


if __name__ == "__main__":
    main()
