"""The hatch hook on a sample package: wheel, source distribution, editable."""

import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from burn_import.build.models import bring_up_to_date, configured
from burn_import.output import OutputRefused
from tests.importer.onnx_files import graph, model, saved, stored

PYPROJECT = """\
[build-system]
requires = ["hatchling", "burn-import"]
build-backend = "hatchling.build"

[project]
name = "sample"
version = "1.0"
requires-python = ">=3.11"

[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.hatch.build.targets.wheel]
packages = ["src/sample"]

[[tool.hatch.build.hooks.burn-import.models]]
input = "models/net.onnx"
output = "src/sample/net.py"
class-name = "Net"
"""
OUTPUTS = {"sample/net.py", "sample/net.safetensors"}


def write_model(path: Path, factor: float) -> None:
    """A model y = x * w."""
    weight = stored("w", factor * np.arange(3, dtype=np.float32))
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    saved(path, model(graph([node], initializers=(weight,))))


def build(kind: str, root: Path) -> Path:
    """The distribution that hatchling builds of a project."""
    import hatchling.build

    before = Path.cwd()
    os.chdir(root)
    try:
        out = root.parent / "dist" / root.name
        out.mkdir(parents=True, exist_ok=True)
        return out / str(getattr(hatchling.build, f"build_{kind}")(str(out)))
    finally:
        os.chdir(before)


def names(wheel: Path) -> set[str]:
    """The files in a wheel."""
    return set(zipfile.ZipFile(wheel).namelist())


def test_wheel(project: Path) -> None:
    wheel = build("wheel", project)
    assert names(wheel) >= OUTPUTS
    source = zipfile.ZipFile(wheel).read("sample/net.py")
    assert b"class Net(" in source
    assert (project / "src" / "sample" / "net.py").read_bytes() == source


def test_wheel_from_a_source_distribution(project: Path) -> None:
    first = zipfile.ZipFile(build("wheel", project)).read("sample/net.py")
    archive = build("sdist", project)
    with tarfile.open(archive) as tar:
        tar.extractall(project.parent / "unpacked", filter="data")
    root = project.parent / "unpacked" / "sample-1.0"
    assert (root / "models" / "net.onnx").is_file()
    (root / "models" / "net.onnx").unlink()  # as if it were too large to ship
    wheel = build("wheel", root)
    assert names(wheel) >= OUTPUTS
    assert zipfile.ZipFile(wheel).read("sample/net.py") == first


def test_editable(project: Path) -> None:
    wheel = build("editable", project)
    assert not names(wheel) & OUTPUTS  # they are found in the source tree
    assert all((project / "src" / name).is_file() for name in OUTPUTS)


def test_outputs_are_made_anew_when_the_model_changes(project: Path) -> None:
    build("wheel", project)
    paths = [project / "src" / name for name in sorted(OUTPUTS)]
    before = [path.stat().st_mtime_ns for path in paths]
    contents = [path.read_bytes() for path in paths]
    build("wheel", project)
    assert [path.stat().st_mtime_ns for path in paths] == before
    write_model(project / "models" / "net.onnx", 2)
    build("wheel", project)
    after = [path.read_bytes() for path in paths]
    assert after[0] != contents[0] and after[1] != contents[1]


def entry(**values: Any) -> dict[str, Any]:
    """A table of one model."""
    return {"models": [{"input": "models/net.onnx", "output": "src/net.py", **values}]}


def test_edited_modules_stay(project: Path) -> None:
    (sample,) = configured(entry(), project)
    assert bring_up_to_date(sample) == []
    sample.output.write_text(sample.output.read_text() + "# mine\n")
    write_model(project / "models" / "net.onnx", 2)
    (warning,) = bring_up_to_date(sample)
    assert "net.py was edited" in warning
    assert sample.output.read_text().endswith("# mine\n")


def test_another_class_name_is_noticed(project: Path) -> None:
    bring_up_to_date(configured(entry(), project)[0])
    (sample,) = configured(entry(**{"class-name": "Other"}), project)
    bring_up_to_date(sample)
    assert "class Other(" in sample.output.read_text()


def test_files_of_others_stay(project: Path) -> None:
    (sample,) = configured(entry(), project)
    sample.output.write_text("mine = 1\n")
    with pytest.raises(OutputRefused, match="not written by burn-import"):
        bring_up_to_date(sample)
    assert sample.output.read_text() == "mine = 1\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "list of tables"),
        ({"models": [{"input": "a.onnx"}]}, r"models\[0\].*'output'"),
        (entry(ouput="x"), "ouput"),
        (entry(output=3), "text"),
        (entry(output="../net.py"), "inside the project"),
        (entry(output="src/json.py"), "standard library"),
    ],
)
def test_wrong_tables(project: Path, table: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configured(table, project)


def test_other_options_are_noticed(project: Path) -> None:
    (sample,) = configured(entry(), project)
    bring_up_to_date(sample)
    plain = sample.output.read_text()
    (sample,) = configured(entry(dtype="float16", shapes={"x": [2, 3]}), project)
    bring_up_to_date(sample)
    assert 'x="float16[2, 3]"' in sample.output.read_text()
    before = sample.output.stat().st_mtime_ns
    assert bring_up_to_date(sample) == []
    assert sample.output.stat().st_mtime_ns == before
    bring_up_to_date(configured(entry(), project)[0])
    assert sample.output.read_text() == plain


def test_options_that_do_not_fit_are_told(project: Path) -> None:
    (sample,) = configured(entry(simplify=["gelo"], outputs=["z"]), project)
    with pytest.raises(ValueError, match="did you mean 'gelu'"):
        bring_up_to_date(sample)
    with pytest.raises(ValueError, match=r"models\[0\]: dtype: expected one of"):
        configured(entry(dtype="half"), project)


def test_a_failed_import_is_a_message(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "models" / "net.onnx").write_bytes(b"PK")
    with pytest.raises(SystemExit):
        build("wheel", project)
    assert "burn-import: models/net.onnx: " in capsys.readouterr().err


def test_the_table_of_all_build_systems(project: Path) -> None:
    text = (project / "pyproject.toml").read_text()
    own = "[[tool.hatch.build.hooks.burn-import.models]]"
    neutral = "[tool.hatch.build.hooks.burn-import]\n\n[[tool.burn-import.models]]"
    (project / "pyproject.toml").write_text(text.replace(own, neutral))
    assert names(build("wheel", project)) >= OUTPUTS
