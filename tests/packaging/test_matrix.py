"""Packages with a generated module: built, installed, run, and changed.

Two build systems are tried with what is installed. ``--packaging`` tries all of them in
isolated builds, and PyInstaller; this needs the package index.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipapp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn.backend.cpu.onednn.binding.search import has_wheel
from burn_import.version import VERSION
from tests.packaging.projects import (
    SYSTEMS,
    Environment,
    expected,
    make_project,
    new_environment,
    run,
    write_net,
)
from tests.test_distributions import built_wheels

OFFLINE = ("hatchling", "setuptools")
pytestmark = pytest.mark.thorough


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of burn-import and burn-runtime, by name."""
    return built_wheels(tmp_path_factory.mktemp("wheels"))


def cells() -> list[Any]:
    """Return the build systems: offline, and with the index if it is asked for."""
    online = [
        pytest.param(system, True, marks=pytest.mark.packaging, id=f"{system}-index")
        for system in SYSTEMS
    ]
    return [pytest.param(system, False, id=system) for system in OFFLINE] + online


@pytest.fixture
def system(request: pytest.FixtureRequest) -> str:
    """The name of a build system."""
    name: str = request.param
    return name


@pytest.fixture
def online(request: pytest.FixtureRequest) -> bool:
    """Return whether the package index is used."""
    given: bool = request.param
    return given


@pytest.fixture
def project(system: str, online: bool, tmp_path: Path) -> Path:
    """A project of a build system."""
    reason = f"{system} is of the extra dev and not installed"
    if not online:
        pytest.importorskip(system, reason=reason)
    if system == "maturin" and shutil.which("cargo") is None:
        pytest.skip("no Cargo, which compiles packages of maturin")
    return make_project(tmp_path / "project", system)


@pytest.fixture
def environment(wheels: dict[str, Path], tmp_path: Path, online: bool) -> Environment:
    """A clean environment with the runtime."""
    runtime = wheels["burn-runtime"]
    folder = runtime.parent if online else None
    return new_environment(tmp_path / "env", runtime, folder)


def results(environment: Environment, tmp_path: Path) -> list[list[float]]:
    """Return what the installed application prints, from a folder without sources."""
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    printed = environment.output("-m", "sample", cwd=tmp_path / "elsewhere")
    values: list[list[float]] = json.loads(printed)
    return values


@pytest.mark.parametrize(("system", "online"), cells(), indirect=True)
def test_source_distribution_to_wheel_to_a_clean_environment(
    project: Path, environment: Environment, tmp_path: Path
) -> None:
    options = ["--outdir", str(tmp_path / "dist")]
    if environment.wheels is None:
        options.append("--no-isolation")
    build = [sys.executable, "-m", "build", *options, str(project)]
    run(build, environment.wheels, path=os.pathsep.join(filter(None, sys.path)))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert list((tmp_path / "dist").glob("*.tar.gz"))
    environment.install(wheel)
    shutil.rmtree(project / "src")
    np.testing.assert_allclose(results(environment, tmp_path), expected(project), 1e-6)
    modules = "import sample.net, sys; print(*sys.modules)"
    loaded = set(environment.output("-c", modules).split())
    assert not loaded & {"onnx", "google.protobuf", "jinja2", "black", "burn_import"}


@pytest.mark.parametrize(("system", "online"), cells(), indirect=True)
def test_editable_install_follows_the_model(
    system: str, project: Path, environment: Environment, tmp_path: Path
) -> None:
    def reinstalled() -> list[list[float]]:
        options = ("--force-reinstall", "--no-deps", "--no-build-isolation", "-e")
        environment.install(*options, project, builds=True)
        return results(environment, tmp_path)

    if environment.wheels is not None:
        environment.install(SYSTEMS[system][0], "editables", f"burn-import=={VERSION}")
    first = reinstalled()
    np.testing.assert_allclose(first, expected(project), 1e-6)
    write_net(project, factor=2)
    changed = reinstalled()
    np.testing.assert_allclose(changed, expected(project), 1e-6)
    assert changed != first
    for name in ("net.py", "net.safetensors"):
        (project / "src" / "sample" / name).unlink()
        assert reinstalled() == changed
        assert (project / "src" / "sample" / name).is_file()


@pytest.mark.parametrize(
    ("system", "online"), [pytest.param("hatchling", False, id="")]
)
def test_zip_application(
    project: Path, environment: Environment, tmp_path: Path
) -> None:
    folder = tmp_path / "app"
    environment.install(
        *("--no-build-isolation", "--target", folder), project, builds=True
    )
    zipapp.create_archive(folder, tmp_path / "app.pyz", main="sample.__main__:main")
    printed = json.loads(environment.output(tmp_path / "app.pyz"))
    np.testing.assert_allclose(printed, expected(project), 1e-6)


@pytest.mark.packaging
@pytest.mark.parametrize(("system", "online"), [("hatchling", True)], indirect=True)
def test_pyinstaller(project: Path, environment: Environment, tmp_path: Path) -> None:
    environment.install("pyinstaller", project)
    (tmp_path / "main.py").write_text("from sample.__main__ import main\n\nmain()\n")
    record = project / "src" / "sample" / "net.safetensors"
    assert record.is_file()
    environment.output(
        *("-m", "PyInstaller", "--log-level", "ERROR", "--onedir"),
        *("--add-data", f"{record}{os.pathsep}sample", "main.py"),
        cwd=tmp_path,
    )
    program = tmp_path / "dist" / "main" / ("main.exe" if os.name == "nt" else "main")
    alone = shutil.copytree(program.parent, tmp_path / "alone")
    printed = subprocess.check_output([alone / program.name], env={}, text=True)
    np.testing.assert_allclose(json.loads(printed), expected(project), 1e-6)


@pytest.mark.packaging
@pytest.mark.skipif(not has_wheel(), reason="no oneDNN wheel for this platform")
def test_a_target_folder_computes_by_onednn_after_the_remedy(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    """The commands of ``docs/deployment.md``: pip leaves the library out."""
    vendor, pip = tmp_path / "vendor", [sys.executable, "-m", "pip"]
    run([*pip, "install", "-q", "--target", str(vendor), str(wheels["burn-runtime"])])
    python = Environment(tmp_path / "env", None)
    venv.create(python.folder, with_pip=False)
    code = f"import sys; sys.path.insert(0, {str(vendor)!r}); import burn; "
    code += "import numpy; x = burn.tensor(numpy.ones((512, 512), 'f4')); "
    code += "print((x @ x).shape, burn.backend.engine().name)"
    program = [str(python.python), "-I", "-W", "error", "-c", code]
    warned = subprocess.run(program, capture_output=True, text=True, check=False)
    assert "Unpack it there: pip download --no-deps onednn-cpu-gomp" in warned.stderr
    run([*pip, "download", "-q", "--no-deps", "onednn-cpu-gomp"], cwd=tmp_path)
    (wheel,) = tmp_path.glob("onednn_cpu_gomp-*.whl")
    run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(vendor)])
    assert subprocess.check_output(program, text=True) == "(512, 512) onednn\n"
