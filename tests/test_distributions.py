"""The two distributions: what is in them, what they need, and one version."""

import os
import subprocess
import sys
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from onnx import helper

from burn.version import VERSION
from burn_import.pipeline import import_model, write_model
from burn_import.version import VERSION as IMPORTER_VERSION
from tests.importer.onnx_files import graph, model, saved, stored
from tests.test_house import NOT_IN_RUNTIME, ROOT

FOLDERS = {"burn-import": ROOT, "burn-runtime": ROOT / "runtime"}
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of both distributions, by name."""
    return built_wheels(tmp_path_factory.mktemp("dist"))


def built_wheels(out: Path) -> dict[str, Path]:
    """Return the wheels that hatchling builds of both into a folder, by name."""
    import hatchling.build

    before = Path.cwd()
    try:
        built = {}
        for name, folder in FOLDERS.items():
            os.chdir(folder)
            built[name] = out / hatchling.build.build_wheel(str(out))
    finally:
        os.chdir(before)
    return built


def metadata(wheel: Path) -> Message:
    """The METADATA of a wheel."""
    with ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def packages(wheel: Path) -> set[str]:
    """The top folders of a wheel, but for its metadata."""
    with ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    return {top for top in tops if not top.endswith(".dist-info")}


def test_versions_agree(wheels: dict[str, Path]) -> None:
    assert VERSION == IMPORTER_VERSION
    assert {metadata(wheel)["Version"] for wheel in wheels.values()} == {VERSION}
    requirements = metadata(wheels["burn-import"]).get_all("Requires-Dist", [])
    assert f"burn-runtime=={VERSION}" in requirements
    for folder in FOLDERS.values():  # the version is in one file
        assert VERSION not in (folder / "pyproject.toml").read_text("utf-8")


def test_each_package_is_in_one_of_them(wheels: dict[str, Path]) -> None:
    assert packages(wheels["burn-runtime"]) == {"burn"}
    assert packages(wheels["burn-import"]) == {
        "burn_import",
        "burn_ir",
        "burn_templates",
    }
    with ZipFile(wheels["burn-runtime"]) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("/entry_points.txt")]
        assert b"[pyinstaller40]\nhook-dirs = burn.pyinstaller" in archive.read(name)
        assert "burn/pyinstaller/hook-burn.py" in archive.namelist()
        assert "burn/py.typed" in archive.namelist()


def test_the_runtime_needs_nothing_of_the_compiler(wheels: dict[str, Path]) -> None:
    requirements = metadata(wheels["burn-runtime"]).get_all("Requires-Dist", [])
    always = {line.split(">")[0].split("=")[0] for line in requirements}
    assert {"numpy", "ml-dtypes", "onednn-cpu-gomp"} <= always
    assert not [line for line in requirements if line.startswith("onnx")]


@pytest.mark.parametrize("name", FOLDERS)
def test_an_index_shows_versions_licences_and_readme(
    name: str, wheels: dict[str, Path]
) -> None:
    about = metadata(wheels[name])
    prefix = "Programming Language :: Python :: 3."
    classifiers = about.get_all("Classifier", [])
    minors = [c.removeprefix(prefix) for c in classifiers if c.startswith(prefix)]
    assert minors == ["11", "12", "13", "14"] and about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "MIT OR Apache-2.0"
    assert sorted(about.get_all("License-File", [])) == LICENCES
    with ZipFile(wheels[name]) as archive:
        files = [n.rpartition("/")[2] for n in archive.namelist() if "/licenses/" in n]
    assert sorted(files) == LICENCES
    assert about["Description-Content-Type"] == "text/markdown"
    readme = (FOLDERS[name] / "README.md").read_text("utf-8")
    text = about.get_payload(decode=True)
    assert isinstance(text, bytes) and text.decode().strip() == readme.strip()


@pytest.mark.parametrize("name", LICENCES)
def test_both_have_the_same_licences(name: str) -> None:
    assert (ROOT / name).read_bytes() == (ROOT / "runtime" / name).read_bytes()


def test_a_generated_module_runs_on_the_runtime_alone(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    weight = stored("w", np.arange(3, dtype=np.float32))
    source = tmp_path / "net.onnx"
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    saved(source, model(graph([node], initializers=(weight,))))
    write_model(import_model(source), tmp_path / "net.py")
    with ZipFile(wheels["burn-runtime"]) as archive:
        archive.extractall(tmp_path / "site")
    code = f"""
import sys
import burn, numpy
from net import Net
assert burn.__file__.startswith({str(tmp_path)!r}), burn.__file__
print(Net.load()(burn.tensor(numpy.ones((2, 3), "f4"))).numpy().tolist())
print(sorted(name for name in sys.modules if name.partition(".")[0] in
      {sorted(NOT_IN_RUNTIME | {"burn_import", "burn_ir", "burn_templates"})!r}))
"""
    path = os.pathsep.join([str(tmp_path / "site"), str(tmp_path)])
    output = subprocess.check_output(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, text=True
    )
    assert output.splitlines() == ["[[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]", "[]"]
