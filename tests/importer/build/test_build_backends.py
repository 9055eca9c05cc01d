"""The hooks of other build systems than hatch, on a sample package, offline."""

import importlib
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from burn_import.build.project import BuildFailed, project_models
from tests.forked import Ended, run_forked
from tests.importer.build.test_build_hook import OUTPUTS, names, write_model
from tests.test_house import ROOT

MODELS = """
[[tool.burn-import.models]]
input = "models/net.onnx"
output = "src/sample/net.py"
class-name = "Net"
"""
PROJECT = """
[project]
name = "sample"
version = "1.0"
requires-python = ">=3.11"
"""
SETUPTOOLS = """\
[build-system]
requires = ["setuptools>=70.1", "burn-import"]
build-backend = "setuptools.build_meta"
""" + PROJECT + MODELS
#: A backend without hooks of ours, which leaves models out of source distributions.
WRAPPED = """\
[build-system]
requires = ["hatchling", "burn-import"]
build-backend = "burn_import.build.backend"

[tool.burn-import]
backend = "hatchling.build"

[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.hatch.build.targets.wheel]
packages = ["src/sample"]

[tool.hatch.build.targets.sdist]
exclude = ["/models"]
""" + PROJECT + MODELS
PDM = """\
[build-system]
requires = ["pdm-backend", "burn-import"]
build-backend = "pdm.backend"
""" + PROJECT + MODELS
BACKENDS = {
    "pdm.backend": PDM,
    "setuptools.build_meta": SETUPTOOLS,
    "burn_import.build.backend": WRAPPED,
}
#: Where records stand that are not one file, by the option.
OPTIONS = {
    "embed = true": {"sample/net.py"},
    'shard-size = "20KB"': {
        "sample/net.py",
        "sample/net.safetensors.index.json",
        "sample/net-00001-of-00003.safetensors",
        "sample/net-00002-of-00003.safetensors",
        "sample/net-00003-of-00003.safetensors",
    },
}
#: What processes of other tests import from.
PATHS = [path for path in sys.path if path]
DIGITS = ROOT / "models" / "digits" / "digits.onnx"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    reason = f"{name} is of the extra dev and not installed"
    if name.startswith("setuptools"):
        pytest.importorskip("setuptools", minversion="70.1", reason=reason)
    elif name.startswith("pdm"):
        pytest.importorskip(name, reason=reason)
    return name


@pytest.fixture
def project(tmp_path: Path, backend: str) -> Path:
    """A package that is built by the backend, which finds our entry points."""
    plugin = tmp_path / "installed" / "burn_import_hook-1.dist-info"
    plugin.mkdir(parents=True)
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: burn-import-hook\n")
    (plugin / "entry_points.txt").write_text(
        "[setuptools.finalize_distribution_options]\n"
        "burn-import = burn_import.build.setuptools:finalize\n"
        "[pdm.build.hook]\nburn-import = burn_import.build.pdm\n"
    )
    root = tmp_path / "project"
    (root / "src" / "sample").mkdir(parents=True)
    (root / "models").mkdir()
    (root / "src" / "sample" / "__init__.py").touch()
    (root / "pyproject.toml").write_text(BACKENDS[backend])
    write_model(root / "models" / "net.onnx", 1)
    return root


def call_hook(backend: str, kind: str, folder: str, installed: str) -> None:
    """Call a hook of the backend, which finds the entry points in ``installed``."""
    sys.path.insert(0, installed)
    hooks = importlib.import_module(backend)
    print("built", getattr(hooks, f"build_{kind}")(folder))


def run(backend: str, kind: str, root: Path, installed: Path) -> Ended:
    """A finished process that called a hook of the backend in a project."""
    arguments = (backend, kind, str(root.parent), str(installed))
    return run_forked(call_hook, *arguments, folder=root, timeout=300)


def build(backend: str, kind: str, root: Path, installed: Path) -> Path:
    """The distribution that the backend builds of a project."""
    done = run(backend, kind, root, installed)
    assert done.code == 0, done.output
    return root.parent / done.output.splitlines()[-1].removeprefix("built ")


@pytest.fixture
def installed(project: Path) -> Path:
    return project.parent / "installed"


@pytest.mark.sampled(3)
def test_wheel(backend: str, project: Path, installed: Path) -> None:
    wheel = build(backend, "wheel", project, installed)
    assert names(wheel) >= OUTPUTS
    with zipfile.ZipFile(wheel) as archive:
        assert b"class Net(" in archive.read("sample/net.py")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("option", OPTIONS)
def test_wheel_of_other_records(
    backend: str, project: Path, installed: Path, option: str
) -> None:
    shutil.copy(DIGITS, project / "models" / "net.onnx")
    with (project / "pyproject.toml").open("a") as file:
        file.write(option)  # in the table of the model, which is the last
    wheel = build(backend, "wheel", project, installed)
    packed = {name for name in names(wheel) if name.startswith("sample/net")}
    assert packed == OPTIONS[option]


@pytest.mark.thorough
def test_wheel_from_a_source_distribution(
    backend: str, project: Path, installed: Path, tmp_path: Path
) -> None:
    archive = build(backend, "sdist", project, installed)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    root = tmp_path / "unpacked" / "sample-1.0"
    assert (root / "models" / "net.onnx").is_file()
    for name in OUTPUTS:
        (root / "src" / name).unlink(missing_ok=True)
    assert names(build(backend, "wheel", root, installed)) >= OUTPUTS


@pytest.mark.sampled(3)
def test_editable(backend: str, project: Path, installed: Path) -> None:
    build(backend, "editable", project, installed)
    assert all((project / "src" / name).is_file() for name in OUTPUTS)


@pytest.mark.thorough
def test_only_a_changed_model_is_imported_anew(
    backend: str, project: Path, installed: Path
) -> None:
    build(backend, "wheel", project, installed)
    paths = [project / "src" / name for name in sorted(OUTPUTS)]
    before = [path.stat().st_mtime_ns for path in paths]
    contents = [path.read_bytes() for path in paths]
    write_model(project / "models" / "net.onnx", 1)  # another file, the same bytes
    build(backend, "wheel", project, installed)
    assert [path.stat().st_mtime_ns for path in paths] == before
    write_model(project / "models" / "net.onnx", 2)
    wheel = build(backend, "wheel", project, installed)
    assert all(
        old != path.read_bytes() for old, path in zip(contents, paths, strict=True)
    )
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("sample/net.safetensors") == paths[1].read_bytes()


@pytest.mark.sampled(3)
def test_failures_are_messages(backend: str, project: Path, installed: Path) -> None:
    (project / "models" / "net.onnx").write_text("<html>not found</html>")
    done = run(backend, "wheel", project, installed)
    assert done.code != 0
    assert "burn-import: models/net.onnx: " in done.output
    assert "Traceback" not in done.output
    (project / "pyproject.toml").write_text(BACKENDS[backend] + 'ouput = "x"\n')
    done = run(backend, "wheel", project, installed)
    assert done.code != 0 and "Traceback" not in done.output
    assert "models[0]: expected keys among" in done.output


def test_projects_without_the_table_build(
    backend: str, project: Path, installed: Path
) -> None:
    if backend == "burn_import.build.backend":
        (project / "pyproject.toml").write_text(PROJECT)
        done = run(backend, "wheel", project, installed)
        assert "expected the backend to build with" in done.output
        return
    (project / "pyproject.toml").write_text(BACKENDS[backend].replace(MODELS, ""))
    assert not names(build(backend, "wheel", project, installed)) & OUTPUTS


def test_outputs_that_are_left_out_are_noticed(tmp_path: Path) -> None:
    from burn_import.build import backend

    root = tmp_path
    (root / "pyproject.toml").write_text(MODELS)
    wheel = tmp_path / "sample.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("sample/net.py", "")
    with pytest.raises(BuildFailed, match="has no net.safetensors"):
        backend._check_outputs(wheel, project_models(root), root)
