"""Whole models: import, export, onnxruntime and a second import agree.

The models are not in the repository; ``--zoo FOLDER`` sets their folder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import export_onnx, load
from burn_import.export.errors import ExportError
from burn_import.verification.session import difference
from tests.layout import as_printed
from tests.modules import call, value_names
from tests.written_modules import Modules

#: Models that need control flow, with the reason.
REFUSED = {
    "reads the value of a tensor": {
        *("real/silero-vad/silero_vad", "arch/loop_scan_outputs.hand-op13"),
        *("arch/script_loop.ts-op11", "arch/script_loop.ts-op17"),
        *("arch/sequence_ops.hand-op13", "arch/torch_cond.dynamo-op20"),
    },
    "sets its state (RandomState)": {"arch/vits_full.ts-op15"},
}


def models(zoo: Path, kind: str) -> Iterator[tuple[str, Path, Path]]:
    """Return the name, file and recorded arrays of each model."""
    pattern = "*/*.onnx" if kind == "real" else "*.onnx"
    for path in sorted((zoo / kind).glob(pattern)):
        recorded = path.with_suffix(".golden.npz")
        if recorded.exists():
            yield path.relative_to(zoo).as_posix()[: -len(".onnx")], path, recorded


def problem_of(model: Any, path: Path, recorded: Path, target: Path) -> str:
    """Return why a model does not survive the round trip; "" if it does."""
    with np.load(recorded) as data:
        names, _ = value_names(path)
        inputs = [data[f"in:{name}"] for name in names if f"in:{name}" in data]
    try:
        written = export_onnx(
            model, tuple(burn.tensor(x) for x in inputs), target, force=True
        )
    except ExportError as error:
        return str(error)
    if written.engine != "onnxruntime" or not written.difference <= 1e-4:  # type: ignore[operator]
        return f"{written.engine}: {written.difference}"
    with as_printed():
        again = load(target)
    pairs = zip(call(again, inputs), call(model, inputs), strict=True)
    worst = max(difference(a, b) for a, b in pairs)
    return "" if worst <= 1e-4 else f"imported again: {worst}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each model, or one of a kind that is skipped."""
    zoo: Path = metafunc.config.getoption("--zoo")
    results = []
    for kind in ("real", "arch"):
        entries = list(models(zoo, kind))
        results += [pytest.param(entry, id=entry[0]) for entry in entries]
        if not entries:
            skip = pytest.mark.skip(reason=f"the zoo is not here: {zoo / kind}")
            results.append(pytest.param(None, id=kind, marks=skip))
    metafunc.parametrize("entry", results)


@pytest.mark.models
@pytest.mark.sampled(8)
def test_models_survive_the_round_trip(
    entry: tuple[str, Path, Path], modules: Modules, tmp_path: Path
) -> None:
    name, path, recorded = entry
    model = modules.load(path)
    problem = problem_of(model, path, recorded, tmp_path / "out.onnx")
    reasons = [reason for reason, names in REFUSED.items() if name in names]
    assert all(reason in problem for reason in reasons)
    assert reasons or not problem
