"""Third-party models as standalone modules, which give the recorded outputs.

The models are not in the repository: ``--zoo FOLDER`` says where they are. Of each
architecture, whose exports call the same functions of the runtime, one is compared, and
all with ``--nightly``.
"""

from pathlib import Path
from typing import Any

import pytest

from burn_import.standalone import standalone
from tests.layout import as_printed
from tests.standalone import import_alone, run_alone
from tests.written_modules import Modules
from tests.zoo.known import REFUSED
from tests.zoo.recorded import Case, Value, with_marks, zoo_cases
from tests.zoo.test_recorded import SMALL

#: How many models there are in the folders.
COUNTS = {"real": 11, "arch": 159}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file."""
    for kind in COUNTS:
        if kind in metafunc.fixturenames:
            zoo: Path = metafunc.config.getoption("--zoo")
            metafunc.parametrize(kind, listed(zoo, kind))


def listed(zoo: Path, kind: str) -> list[Any]:
    """Return the parameters of the tests of one folder, or one that is skipped."""
    if not (zoo / "manifest.json").is_file():
        reason = f"no models in {zoo.name}/ (see --zoo): {COUNTS[kind]} not checked"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    cases = [c for c in zoo_cases(zoo) if c.name.split("/")[0] == kind]
    assert len(cases) == COUNTS[kind]
    usable = (case for case in cases if case.name not in REFUSED)
    return [
        pytest.param(
            c, id=c.name, marks=[*marks, *[pytest.mark.models] * (c.nodes > SMALL)]
        )
        for c, marks in with_marks(usable)
    ]


def alone(case: Case, modules: Modules, folder: Path) -> tuple[Path, Path]:
    """Return the standalone module of a model, and its record."""
    ordinary, name = modules.written(case.path)
    header, quotes, body = ordinary.read_text("ascii").partition('"""')
    path = folder / "net.py"
    path.write_text(header + standalone(quotes + body), "ascii")
    assert name == "Net"
    return path, ordinary.with_suffix(".safetensors")


def given(file: Any, value: Value) -> Value:
    """Return what a model is called with for a recorded input."""
    if isinstance(value, list):
        return [given(file, item) for item in value]
    return file.tensor(value)


@pytest.mark.sampled(8)
def test_real_models_run_where_there_is_numpy_alone(
    real: Case, modules: Modules, tmp_path: Path
) -> None:
    with as_printed():
        path, record = alone(real, modules, tmp_path)
    path.with_suffix(".safetensors").symlink_to(record)
    for golden in real.goldens:
        inputs, expected = golden.read()
        results = run_alone(path, inputs)
        for position, value in expected.items():
            real.compare(results[position], value, f"output {position}")


@pytest.mark.sampled(12)
def test_architectures(
    arch: Case, modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_printed():
        path, record = alone(arch, modules, tmp_path)
    file = import_alone(path, monkeypatch)
    model = file.Net.load(record)
    for golden in arch.goldens:
        inputs, expected = golden.read()
        result = model(*(given(file, value) for value in inputs))
        results = result if isinstance(result, tuple) else (result,)
        for position, value in expected.items():
            arch.compare(results[position], value, f"output {position}")
