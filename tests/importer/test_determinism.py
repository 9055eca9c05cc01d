"""The same model and options give the same bytes, wherever and whenever."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from burn_import.options import Hints, Options

ROOT = Path(__file__).parent.parent.parent
ROOTS = [str(ROOT / name) for name in ("importer", "ir", "templates", "runtime")]
MODELS = [
    *sorted((ROOT / "tests" / "golden").glob("*/model.onnx")),
    *sorted((ROOT / "models").glob("*/*.onnx")),
]
#: Of so many models a plain run imports one.
STEP = 8
#: Beside none, which every model is imported with.
OPTIONS = [
    Options(flat=True),
    Options(target="torch"),
    Options(passes=()),
    Options(dtype="float16", passes=("all",)),
]

#: Writes every module and record, and prints what is in them.
IMPORT = """
import hashlib, sys
from pathlib import Path
from burn_import.options import Hints, Options
from burn_import.pipeline import import_model, write_model
jobs = [(path, {}) for path in sys.argv[2:]]
jobs += [(sys.argv[2], given) for given in eval(sys.argv[1])]
for number, (path, given) in enumerate(jobs):
    stem = f"model_{number}"
    written = write_model(import_model(path, Options(stem=stem, **given)), f"{stem}.py")
    for path in (written.module, written.weights):
        print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
"""

PLACES: dict[str, tuple[list[str], dict[str, str]]] = {
    "no language": (
        ["-X", "utf8=0"],
        {"PYTHONHASHSEED": "0", "LC_ALL": "C", "PYTHONIOENCODING": "latin-1"},
    ),
    "another language": (
        ["-X", "utf8=0"],
        {"PYTHONHASHSEED": "1", "LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "tr"},
    ),
    "far away": (
        ["-O"],
        {"PYTHONHASHSEED": "random", "TZ": "Pacific/Kiritimati", "HOME": "/nowhere"},
    ),
}


def started(place: str, folder: Path, models: Sequence[Path]) -> subprocess.Popen[str]:
    """Return a process that imports models in a place of its own."""
    flags, settings = PLACES[place]
    environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(ROOTS)}
    given = repr([{k: v for k, v in vars(o).items() if v} for o in OPTIONS])
    command = [sys.executable, *flags, "-c", IMPORT, given, *map(str, models)]
    folder.mkdir()
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_bytes_depend_on_nothing_else(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    models = MODELS[:: 1 if request.config.getoption("--all-cases") else STEP]
    processes = {
        index: started(index, tmp_path / f"in here {number}", models)
        for number, index in enumerate(PLACES)
    }
    results = {}
    for index, process in processes.items():
        results[index], problems = process.communicate()
        assert process.returncode == 0, problems
    first = results["no language"]
    assert len(first.splitlines()) == 2 * (len(models) + len(OPTIONS))
    for index, lines in results.items():
        assert lines == first, index


def test_options_are_told_apart() -> None:
    several = (*OPTIONS, Options(hints=Hints(activation="relu")), Options())
    assert len({options.mark for options in several}) == len(several)
