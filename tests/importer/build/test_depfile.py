"""Depfiles: imports as steps of Ninja, CMake and Meson, which see every file read."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import helper

from burn.record import write_record
from burn_import.cli.command import burn_import
from tests.importer.build.test_build_backends import PATHS
from tests.importer.onnx_files import graph, model, stored
from tests.test_house import ROOT

OUTPUTS = ("net.py", "net.safetensors")
PAGE = ROOT / "docs" / "deployment.md"
COMMAND = f"{sys.executable} -m burn_import"


def code_of(language: str, command: str) -> str:
    """Return the code of a language in the page, with another command in it."""
    (text,) = re.findall(
        rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    assert "burn-import" in text
    return str(text).replace("burn-import", command)


def tool(name: str) -> str:
    """Return the path of a program; skip the test without it."""
    label = {"ninja": "Ninja", "cmake": "CMake", "meson": "Meson"}[name]
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.is_file() else shutil.which(name)
    return path or pytest.skip(f"no {label}, which is of the extra test")


def write_model(root: Path, factor: float = 1, at: str = "models") -> Path:
    """Write a model whose weights are in another file; return its path."""
    weight = factor * np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    proto = model(graph(nodes, {"x": ["n", 3]}, initializers=(stored("w", weight),)))
    path = root / at / "net.onnx"
    path.parent.mkdir(exist_ok=True)
    (path.parent / "net.data").unlink(missing_ok=True)
    onnx.save(
        *(proto, path),
        save_as_external_data=True,
        location="net.data",
        size_threshold=0,
    )
    return path


def run(command: list[str], folder: Path) -> str:
    """Return what a command prints."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
    env["PATH"] = f"{Path(tool('ninja')).parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def with_ninja(root: Path) -> Path:
    """Write a build of Ninja alone; return its folder."""
    (root / "build.ninja").write_text(code_of("ninja", COMMAND))
    return root


def with_cmake(root: Path) -> Path:
    """Configure a project of CMake; return the folder of its build."""
    head = "cmake_minimum_required(VERSION 3.21)\nproject(sample NONE)\n"
    (root / "CMakeLists.txt").write_text(head + code_of("cmake", COMMAND))
    ninja = f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"
    run([tool("cmake"), "-G", "Ninja", ninja, "-S", ".", "-B", "build"], root)
    return root / "build"


def with_meson(root: Path) -> Path:
    """Configure a project of Meson; return the folder of its build."""
    command = "', '".join((sys.executable, "-m", "burn_import"))
    (root / "meson.build").write_text("project('sample')\n" + code_of("meson", command))
    run([tool("meson"), "setup", "build"], root)
    return root / "build"


BUILDS = {"ninja": with_ninja, "cmake": with_cmake, "meson": with_meson}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BUILDS)
def test_a_build_follows_all_files_of_the_model(name: str, tmp_path: Path) -> None:
    tool(name)
    source = write_model(tmp_path, at=".")
    configure: Callable[[Path], Path] = BUILDS[name]
    folder = configure(tmp_path)

    def built() -> list[bytes]:
        run([tool("ninja")], folder)
        assert "no work to do" in run([tool("ninja")], folder)
        output = folder / "app" if name != "meson" else folder
        return [(output / file).read_bytes() for file in OUTPUTS]

    first = built()
    os.utime(source)  # as git does; the outputs would be the same
    assert built() == first
    before = source.read_bytes()
    write_model(tmp_path, 2, at=".")
    assert source.read_bytes() == before  # what changed are the weights beside it
    changed = built()
    assert all(now != then for now, then in zip(changed, first, strict=True))


def import_with(folder: Path, *args: str | Path) -> Result:
    """Return the result of an import that writes ``net.d``."""
    options = ["-o", folder / "net.py", "--depfile", folder / "net.d"]
    return CliRunner().invoke(burn_import, [str(a) for a in (*args, *options)])


def test_names_are_escaped(tmp_path: Path) -> None:
    source = write_model(tmp_path)
    odd = source.rename(source.with_name("a b#$.onnx"))
    assert import_with(tmp_path, odd).exit_code == 0
    lines = (tmp_path / "net.d").read_text().splitlines()
    assert lines[0] == f"{tmp_path}/net.py: \\"
    assert lines[1] == f"  {tmp_path}/models/a\\ b\\#$$.onnx \\"
    assert lines[2:] == [f"  {tmp_path}/models/net.data"]


def test_settings_and_operators_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_depfile_operators.py").write_text('"""None are declared."""\n')
    source = write_model(tmp_path)
    operators = ("--operators", "my_depfile_operators")
    assert import_with(tmp_path, source, *operators).exit_code == 0
    assert "/my_depfile_operators.py" in (tmp_path / "net.d").read_text()
    weights = tmp_path / "weights"
    weights.mkdir()
    array = np.zeros((2, 2), np.float32)
    write_record(weights / "part.safetensors", [("fc.weight", array)], {})
    index = weights / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"fc.weight": "part.safetensors"}}')
    (weights / "config.json").write_text("{}")
    answer = import_with(tmp_path, index, "--force")
    assert answer.exit_code == 0, answer.output
    text = (tmp_path / "net.d").read_text()
    for name in ("model.safetensors.index.json", "part.safetensors", "config.json"):
        assert f"/weights/{name}" in text


def test_other_files_and_dry_runs_are_refused(tmp_path: Path) -> None:
    source = write_model(tmp_path)
    (tmp_path / "net.d").write_text("notes\n")
    answer = import_with(tmp_path, source)
    assert answer.exit_code == 2
    assert "expected a depfile to replace, got 'net.d'" in answer.output
    assert (tmp_path / "net.d").read_text() == "notes\n"
    assert not (tmp_path / "net.py").exists()
    assert (
        "one of --depfile and --dry-run"
        in import_with(tmp_path, source, "--dry-run").output
    )
