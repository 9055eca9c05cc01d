"""Where oneDNN is looked for, and what is said where it is not."""

import os
import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine, library, search
from burn.pyinstaller import hook_dirs

RUNTIME = Path(__file__).parents[4] / "runtime"
linux = pytest.mark.skipif(
    not search.has_wheel(), reason="no oneDNN wheel for this platform"
)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without oneDNN, whose ``burn`` is in this empty folder."""
    site = tmp_path / "site"
    site.mkdir()

    def no_wheel(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(search, "SITE", site)
    monkeypatch.setattr(metadata, "files", no_wheel)
    monkeypatch.setattr(search, "NAME", "libdnnl-of-tests.so.3")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "base"))
    monkeypatch.delenv(library.PATH_VARIABLE, raising=False)
    return site


def put(folder: Path) -> Path:
    """A file that has the library's name and is none."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / search.NAME
    file.write_text("no library")
    return file.resolve()


@linux
@pytest.mark.parametrize(
    "folder",
    [
        "site",
        "site/lib",
        "site/onednn_cpu_gomp-2023.2.0.data/data/lib",
        "prefix/lib",
        "base/lib",
    ],
)
def test_layouts(bare: Path, folder: str) -> None:
    file = put(bare.parent / folder)
    assert list(search.candidates()) == [str(file), search.NAME]
    refused, _ = library.find_library().refused
    assert refused.startswith(f"{file}: ")


@linux
def test_pyinstaller_finds_it(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = bare.parent / "program"
    monkeypatch.setattr(sys, "_MEIPASS", str(program), raising=False)
    assert "PyInstaller collects" in search.remedy()
    assert list(search.library_files()) == []
    file = put(program)
    assert list(search.library_files()) == [file]


def test_pyinstaller_has_a_hook() -> None:
    (folder,) = hook_dirs()
    namespace: dict[str, Any] = {}
    exec((Path(folder) / "hook-burn.py").read_text(), namespace)
    expected = [(str(file), ".") for file in search.library_files()][:1]
    assert namespace["binaries"] == expected
    kernels = "burn.backend.cpu.onednn.kernels.convolution.convolution"
    assert kernels in namespace["hiddenimports"]


@linux
def test_beside_a_zip(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = bare.parent / "app.pyz"
    archive.touch()
    monkeypatch.setattr(search, "SITE", archive / "vendor")
    assert "cannot be loaded out of app.pyz" in search.remedy()
    file = put(bare.parent / "lib")
    assert list(search.library_files()) == [file]


def test_a_wheel_without_its_library(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = metadata.PackagePath(f"../../lib/{search.NAME}")
    missing.dist = metadata.PathDistribution(bare / "onednn_cpu_gomp.dist-info")
    monkeypatch.setattr(metadata, "files", lambda name: [missing])
    assert list(search.library_files()) == []
    assert "pip install --target" in search.remedy()
    assert str(bare) in search.remedy()


@pytest.fixture
def unchosen(monkeypatch: pytest.MonkeyPatch) -> engine.State:
    """The engine is not chosen yet."""
    state = engine.State()
    monkeypatch.setattr(engine, "STATE", state)
    monkeypatch.delenv(engine.VARIABLE, raising=False)
    return state


def ones(*shape: int) -> burn.Tensor:
    return burn.from_numpy(np.ones(shape, np.float32))


@linux
def test_one_warning_says_how_to_get_it(bare: Path, unchosen: engine.State) -> None:
    small, large = ones(8, 8, 32, 32), ones(8, 64, 64, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.conv(small, ones(8, 8, 3, 3))
    with pytest.warns(RuntimeWarning, match="pip install onednn-cpu-gomp") as caught:
        ops.conv(large, ones(64, 64, 3, 3))
    assert len(caught) == 1 and "BURN_ENGINE=numpy" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.conv(large, ones(64, 64, 3, 3))
        ones(1024, 1024) @ ones(1024, 1024)
    assert "pip install onednn-cpu-gomp" in burn.backend.engine().notes[-1]


@linux
@pytest.mark.parametrize("compiled", [False, True])
def test_matrices_warn(bare: Path, unchosen: engine.State, compiled: bool) -> None:
    def model(x: burn.Tensor) -> burn.Tensor:
        return x @ x

    run = burn.compile(model) if compiled else model
    with pytest.warns(RuntimeWarning, match="several times slower"):
        run(ones(512, 512))


@linux
def test_numpy_by_choice_does_not_warn(
    bare: Path, unchosen: engine.State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(engine.VARIABLE, "numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ones(512, 512) @ ones(512, 512)


def test_platforms_without_a_wheel_do_not_warn(
    bare: Path, unchosen: engine.State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ones(512, 512) @ ones(512, 512)
    assert burn.backend.engine().notes == ()


def test_a_zip_application_computes(tmp_path: Path) -> None:
    from zipfile import ZipFile

    archive = tmp_path / "app.pyz"
    with ZipFile(archive, "w") as file:
        for path in sorted((RUNTIME / "burn").rglob("*.py")):
            file.write(path, path.relative_to(RUNTIME))
        file.writestr(
            "__main__.py",
            "import burn\nfrom burn.backend.cpu.onednn.binding import search\n"
            "x = burn.tensor([[1.0, 2.0]])\nprint((x @ x.mT).numpy()[0, 0])\n"
            "print(search._archive())\n",
        )
    environment = {key: v for key, v in os.environ.items() if key != "PYTHONPATH"}
    output = subprocess.check_output(
        [sys.executable, str(archive)], env=environment, text=True
    )
    assert output.splitlines() == ["5.0", str(archive)]
