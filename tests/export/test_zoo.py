"""Whole models: import, training, export, onnxruntime and a second import agree.

Several exports of an architecture have the same layers: one of them is compared, and
all with ``--nightly``.

The models are not in the repository; ``--zoo FOLDER`` sets their folder.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, dtypes, optim, train
from burn.nn import freeze_statistics
from burn_import import export_onnx, load
from burn_import.export.errors import ExportError
from burn_import.verification.session import difference
from tests.layout import as_printed
from tests.modules import Array, call, value_names
from tests.written_modules import Modules

#: Models that are only exported for the values in the example, which Python reads.
SPECIALIZED = ("real/silero-vad/silero_vad",)
#: Models that need control flow, with the reason.
REFUSED = {
    "reads the value of a tensor": {
        *("real/silero-vad/silero_vad", "arch/loop_scan_outputs.hand-op13"),
        *("arch/script_loop.ts-op11", "arch/script_loop.ts-op17"),
        *("arch/sequence_ops.hand-op13", "arch/torch_cond.dynamo-op20"),
    },
    "sets its state (RandomState)": {"arch/vits_full.ts-op15"},
}
#: Models that can be trained with one example if the statistics of norms are frozen.
UNTRAINABLE = {
    "expected more than one element a channel": {"real/mnist/mnist"},
}


def is_refused(entry: tuple[str, Path, Path]) -> bool:
    """Return whether the tables above name a model."""
    return any(entry[0] in names for names in (SPECIALIZED, *REFUSED.values()))


def models(zoo: Path, kind: str) -> Iterator[tuple[str, Path, Path]]:
    """Return the name, file and recorded arrays of each model."""
    pattern = "*/*.onnx" if kind == "real" else "*.onnx"
    for path in sorted((zoo / kind).glob(pattern)):
        recorded = path.with_suffix(".golden.npz")
        if recorded.exists():
            yield path.relative_to(zoo).as_posix()[: -len(".onnx")], path, recorded


def example(path: Path, recorded: Path) -> list[Array]:
    """Return the recorded inputs of the model at ``path``."""
    with np.load(recorded) as data:
        names, _ = value_names(path)
        return [data[f"in:{name}"] for name in names if f"in:{name}" in data]


def float_results(result: Any) -> list[Tensor]:
    """Return the floating tensors of a result, which can be nested."""
    if isinstance(result, Tensor):
        return [result] if dtypes.is_float(result.dtype) else []
    values = result.values() if isinstance(result, dict) else result
    nested = values if isinstance(result, dict | list | tuple) else ()
    return [tensor for value in nested for tensor in float_results(value)]


def fine_tune(model: Any, inputs: list[Array]) -> list[str]:
    """Return the keys of the parameters that two compiled steps change."""
    before = {key: box.numpy().copy() for key, box in model.parameters()}
    if not before:
        return []
    model.to(Autodiff(Cpu()))

    @train.step(model, optim.SGD(model, lr=0.01, clip_norm=1.0))
    def step(*tensors: Tensor) -> Tensor:
        terms = [((y - 1.0) ** 2.0).mean() for y in float_results(model(*tensors))]
        return sum(terms[1:], terms[0])

    for _ in range(2):
        step(*map(burn.tensor, inputs))
    after = {key: box.numpy() for key, box in model.parameters()}
    assert all(np.isfinite(array).all() for array in after.values())
    return [key for key in after if not np.array_equal(before[key], after[key])]


def problem_of(
    model: Any,
    path: Path,
    inputs: list[Array],
    target: Path,
    *,
    specialize: bool = False,
) -> str:
    """Return why a model does not survive the round trip; "" if it does."""
    tensors = tuple(burn.tensor(x) for x in inputs)
    try:
        written = export_onnx(model, tensors, target, force=True, specialize=specialize)
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
        for _, exports in groupby(entries, lambda entry: entry[0].partition(".")[0]):
            for number, entry in enumerate(exports):
                marks = [pytest.mark.nightly] * (number > 0 and not is_refused(entry))
                results.append(pytest.param(entry, id=entry[0], marks=marks))
        if not entries:
            skip = pytest.mark.skip(reason=f"the zoo is not here: {zoo / kind}")
            results.append(pytest.param(None, id=kind, marks=skip))
    metafunc.parametrize("entry", results)


@pytest.mark.models
@pytest.mark.sampled(8)
def test_trained_models_survive_the_round_trip(
    entry: tuple[str, Path, Path], modules: Modules, tmp_path: Path
) -> None:
    name, path, recorded = entry
    model, inputs = modules.load(path), example(path, recorded)
    reasons = [reason for reason, names in UNTRAINABLE.items() if name in names]
    if reasons:
        with pytest.raises(ValueError, match=reasons[0]):
            fine_tune(model, inputs)
        model = modules.load(path)
        freeze_statistics(model, "*")
        assert fine_tune(model, inputs)
        model = model.valid()
    elif dict(model.parameters()):
        assert fine_tune(model, inputs)
        model = model.valid()
    problem = problem_of(model, path, inputs, tmp_path / "out.onnx")
    reasons = [reason for reason, names in REFUSED.items() if name in names]
    assert all(reason in problem for reason in reasons)
    assert reasons or not problem
    if name in SPECIALIZED:
        given = (inputs, tmp_path / "out.onnx")
        assert not problem_of(model, path, *given, specialize=True)
