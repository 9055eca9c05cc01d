"""Programs that compute by oneDNN out of each layout in which they are installed."""

import os
import subprocess
import venv
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from burn.backend.cpu.onednn.binding import search

RUNTIME = Path(__file__).parents[4] / "runtime"
LIBRARY = next(search.library_files(), None)
pytestmark = pytest.mark.skipif(
    LIBRARY is None or not search.has_wheel(), reason="no oneDNN here"
)
#: A product of more multiplications than what is computed without a warning.
PROGRAM = """\
import sys, warnings
sys.path[:0] = {paths!r}
import burn, numpy
x = burn.tensor(numpy.ones((512, 512), numpy.float32))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert (x @ x).numpy()[0, 0] == 512
engine = burn.backend.engine()
print(engine.name, engine.path, *(str(one.message) for one in caught), sep="\\n")
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A new environment, whose packages are NumPy and ml_dtypes alone."""
    venv.create(tmp_path / "prefix", with_pip=False, symlinks=True)
    site = tmp_path / "packages"
    site.mkdir()
    for name in ("numpy", "ml_dtypes"):
        folder = Path(str(import_module(name).__file__)).parent
        (site / name).symlink_to(folder)
        libraries = folder.with_name(f"{name}.libs")
        if libraries.is_dir():
            (site / libraries.name).symlink_to(libraries)
    return tmp_path / "prefix"


def computed(prefix: Path, burn_in: Path, **variables: str) -> tuple[str, ...]:
    """Return the engine, its file and the warnings of a program."""
    paths = [str(burn_in), str(prefix.parent / "packages")]
    ours = ("PYTHON", "LD_LIBRARY", "BURN")
    env = {key: v for key, v in os.environ.items() if not key.startswith(ours)}
    output = subprocess.check_output(
        [prefix / "bin" / "python", "-c", PROGRAM.format(paths=paths)],
        env=env | variables,
        text=True,
    )
    return tuple(output.splitlines())


def put(folder: Path) -> str:
    """Link the library into a folder; return the path that is reported."""
    assert LIBRARY is not None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / search.NAME).symlink_to(LIBRARY)
    return str(LIBRARY.resolve())


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with a copy of ``burn``."""
    for path in sorted((RUNTIME / "burn").rglob("*.py")):
        file = tmp_path / "site" / path.relative_to(RUNTIME)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(path.read_bytes())
    return tmp_path / "site"


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param("site/lib", id="uv --target"),
        pytest.param("site/onednn_cpu_gomp-2023.2.0.data/data/lib", id="pip --target"),
        pytest.param("prefix/lib", id="conda"),
    ],
)
def test_a_folder_of_the_installation(prefix: Path, site: Path, folder: str) -> None:
    file = put(site.parent / folder)
    assert computed(prefix, site) == ("onednn", file)


def test_the_library_of_the_system(prefix: Path) -> None:
    put(prefix.parent / "system")
    name, path = computed(
        prefix, RUNTIME, LD_LIBRARY_PATH=str(prefix.parent / "system")
    )
    assert name == "onednn" and path.endswith(search.NAME)


def test_beside_a_zip_application(prefix: Path) -> None:
    archive = prefix.parent / "program" / "app.pyz"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted((RUNTIME / "burn").rglob("*.py")):
            packed.write(path, path.relative_to(RUNTIME))
    name, _, warning = computed(prefix, archive)
    assert name == "numpy" and f"put {search.NAME}" in warning
    file = put(archive.parent)
    assert computed(prefix, archive) == ("onednn", file)


def test_an_environment_without_it_says_so_once(prefix: Path) -> None:
    name, path, *warnings = computed(prefix, RUNTIME)
    assert (name, path) == ("numpy", "")
    assert len(warnings) == 1 and "pip install onednn-cpu-gomp" in warnings[0]
