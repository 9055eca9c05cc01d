"""A sample project for each build system, and environments to install it in."""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from burn_import.version import VERSION
from tests.importer.onnx_files import graph, model, saved, stored

HATCHLING = """
[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.hatch.build.targets.wheel]
packages = ["src/sample"]
"""
#: By build system: what it requires, its backend, and its own tables.
SYSTEMS = {
    "hatchling": (
        "hatchling",
        "hatchling.build",
        HATCHLING + "[tool.hatch.build.hooks.burn-import]\n",
    ),
    "setuptools": ("setuptools>=70.1", "setuptools.build_meta", ""),
    "pdm": ("pdm-backend", "pdm.backend", ""),
    "flit": ("flit_core", "burn_import.build.backend", "flit_core.buildapi"),
    "uv": ("uv_build", "burn_import.build.backend", "uv_build"),
    "poetry": (
        "poetry-core>=2",
        "burn_import.build.backend",
        "poetry.core.masonry.api",
    ),
    "maturin": ("maturin>=1.7", "burn_import.build.backend", "maturin"),
}
#: A program in Rust without dependencies, and where maturin finds the package.
CARGO = """\
[package]
name = "sample"
version = "1.0.0"
edition = "2021"

[[bin]]
name = "sample"
path = "rust/main.rs"
"""
MATURIN = """
[tool.maturin]
bindings = "bin"
python-source = "src"
"""
PROJECT = """\
[build-system]
requires = ["{requires}", "burn-import=={version}"]
build-backend = "{backend}"

[project]
name = "sample"
version = "1.0"
description = "A package with a generated module"
requires-python = ">=3.11"
dependencies = ["burn-runtime=={version}"]

[[tool.burn-import.models]]
input = "models/net.onnx"
output = "src/sample/net.py"
class-name = "Net"
"""
#: What an application does with the module: prints its results.
MAIN = """\
import burn
import numpy
from sample.net import Net


def main():
    x = numpy.arange(6, dtype="float32").reshape(2, 3)
    print(Net.load()(burn.tensor(x)).numpy().tolist())


if __name__ == "__main__":
    main()
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def write_net(root: Path, factor: float = 1) -> None:
    """Write the project's model, y = relu(x @ w + b) with weights of a factor."""
    weight = factor * np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], "dense"),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    weights = (stored("w", weight), stored("b", np.ones(4, np.float32)))
    proto = model(graph(nodes, {"x": ["batch", 3]}, initializers=weights))
    saved(root / "models" / "net.onnx", proto)


def expected(root: Path) -> list[list[float]]:
    """Return what onnxruntime computes of the project's model."""
    proto = onnx.load(root / "models" / "net.onnx")
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    values: list[list[float]] = session.run(None, {"x": X})[0].tolist()
    return values


def make_project(root: Path, system: str) -> Path:
    """Return the folder of a new project of a build system."""
    requires, backend, table = SYSTEMS[system]
    if backend == "burn_import.build.backend":
        table = f'[tool.burn-import]\nbackend = "{table}"\n'
    if system == "maturin":
        table += MATURIN
        (root / "rust").mkdir(parents=True)
        (root / "rust" / "main.rs").write_text("fn main() {}\n")
        (root / "Cargo.toml").write_text(CARGO)
    text = PROJECT.format(requires=requires, backend=backend, version=VERSION)
    head, entries, models = text.partition("[[tool.burn-import.models]]")
    (root / "src" / "sample").mkdir(parents=True)
    (root / "models").mkdir()
    (root / "pyproject.toml").write_text(f"{head}{table}\n{entries}{models}")
    (root / "src" / "sample" / "__init__.py").write_text('"""Sample."""\n')
    (root / "src" / "sample" / "__main__.py").write_text(MAIN)
    write_net(root)
    return root


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the options of pip for it.

    Without ``wheels`` nothing is looked for in a package index: what the runtime needs
    is linked from the environment of the tests, whose build systems are used.
    """

    folder: Path
    wheels: Path | None

    @property
    def python(self) -> Path:
        """Its interpreter."""
        scripts = "Scripts" if os.name == "nt" else "bin"
        return self.folder / scripts / ("python.exe" if os.name == "nt" else "python")

    def install(self, *arguments: str | Path, builds: bool = False) -> None:
        """Install packages with pip, which may have to build them."""
        offline = ("--no-index", "--no-deps")
        options = offline if self.wheels is None else ()
        # A build without isolation imports the build system from here.
        path = os.pathsep.join(filter(None, sys.path)) if builds else ""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install"]
        command = [*pip, "-q", *options, *map(str, arguments)]
        run(command, self.wheels, path=path, scripts=self.python.parent)

    def output(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Return what its interpreter prints."""
        return run([str(self.python), "-I", *map(str, arguments)], cwd=cwd)


def run(
    command: list[str],
    wheels: Path | None = None,
    *,
    cwd: Path | None = None,
    path: str = "",
    scripts: Path | None = None,
) -> str:
    """Return what a command prints; its errors are part of a failure.

    ``wheels`` is a folder that pip searches beside the index, ``path`` is PYTHONPATH.
    Programs are looked for in ``scripts`` first, as in an activated environment, where
    uv_build finds its own.
    """
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if scripts is not None:
        env["PATH"] = f"{scripts}{os.pathsep}{env.get('PATH', '')}"
    if wheels is not None:
        env["PIP_FIND_LINKS"] = str(wheels)
    elif path:
        env["PYTHONPATH"] = path
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def new_environment(folder: Path, runtime: Path, wheels: Path | None) -> Environment:
    """Return a new environment that has the runtime, from its wheel, and no more."""
    venv.create(folder, with_pip=False)
    environment = Environment(folder, wheels)
    if wheels is None:
        (site,) = environment.output(
            "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
        ).splitlines()
        for name in ("numpy", "ml_dtypes"):
            link(distribution(name), Path(site))
    environment.install(runtime)
    return environment


def link(package: Distribution, site: Path) -> None:
    """Link the top folders of an installed package into another environment."""
    tops = {
        Path(file.parts[0]) for file in package.files or () if file.parts[0] != ".."
    }
    for top in tops:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(package.locate_file(top))))
