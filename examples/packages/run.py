"""Builds a package whose network is imported while it is built, and runs it.

    python examples/packages/run.py [hatchling|setuptools|pdm]

``hatchling.toml`` and the others are the ``pyproject.toml`` of the package for each
build system, ``src/`` is its code. The network is not in there: the build hook writes
it. The package needs the runtime alone; here it runs out of the wheel, which is not
installed. The program needs ``build`` and the build system, and writes ``generated/``.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
DIGITS = HERE.parents[1] / "models" / "digits"
OUT = HERE / "generated"
SYSTEMS = ("hatchling", "setuptools", "pdm")


def make_project(system: str) -> Path:
    """Return a new folder with the files of the package for a build system."""
    project = OUT / system
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(HERE / "src", project / "src")
    shutil.copy(HERE / f"{system}.toml", project / "pyproject.toml")
    (project / "models").mkdir()
    shutil.copy(DIGITS / "digits.onnx", project / "models")
    return project


def build(project: Path) -> Path:
    """Return the wheel of a project, built with what is installed."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run(
        [*command, str(project)],
        check=True,
        stdout=subprocess.DEVNULL,
        env=search_path(),
    )
    (wheel,) = (project / "dist").glob("*.whl")
    return wheel


def search_path(*first: Path) -> dict[str, str]:
    """Return the environment of a process that imports what this one can, and more."""
    paths = [*map(str, first), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(wheel: Path) -> str:
    """Return what the package prints, imported from its wheel."""
    command = [sys.executable, "-m", "digit_reader", str(DIGITS / "digits_test.npz")]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=search_path(wheel)
    )
    return done.stdout


def main(system: str = "hatchling") -> str:
    """Return what the package of a build system prints."""
    if system not in SYSTEMS:
        raise SystemExit(f"expected {', '.join(SYSTEMS)}, got {system}")
    wheel = build(make_project(system))
    with zipfile.ZipFile(wheel) as file:
        print(wheel.name, *(f"  {name}" for name in file.namelist()), sep="\n")
    printed = run(wheel)
    print(printed, end="")
    return printed


if __name__ == "__main__":
    main(*sys.argv[1:])
