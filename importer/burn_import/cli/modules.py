"""Loading of Python files that contain a module, for commands that take one."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from burn.nn import Module
from burn_import.output import OutputRefused


class CurrentSource(SourceFileLoader):
    """A loader that always compiles the source file and writes no bytecode.

    Python accepts cached bytecode if size and second of the source match, so the
    cache may be from before an edit.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def load_module(path: Path, weights: Path | None = None, name: str = "") -> Any:
    """Return an instance of the class in a generated (or edited) file.

    ``name`` selects the class; by default it is the last one with a ``load``. The
    file is executed and the weights are loaded.

    Raises:
        OutputRefused: the file or class does not exist, or the class is not a module.
    """
    if not path.is_file():
        raise OutputRefused(f"expected a Python file, got {str(path)!r}")
    if path.suffix != ".py":
        raise OutputRefused(
            f"expected a Python file that burn-import wrote, got {path.name!r}",
            f"Import the model first: burn-import {path.name} -o net.py.",
        )
    loader = CurrentSource(path.stem, str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=loader)
    if spec is None or spec.loader is None:
        raise OutputRefused(f"expected a Python file, got {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise OutputRefused(f"{path}: needs {error.name!r}, not installed") from error
    classes = [
        value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and (key == name if name else "load" in vars(value))
    ]
    if not classes:
        wanted = f"a class {name!r}" if name else "a class with a method load"
        raise OutputRefused(f"{path}: expected {wanted}")
    chosen: Any = classes[-1]
    # A standalone file has a class Module of its own.
    own = vars(module).get("Module", Module)
    bases = (Module, own) if own.__module__ == module.__name__ else Module
    if not issubclass(chosen, bases):
        raise OutputRefused(f"{path}: expected a module of burn, got {chosen.__name__}")
    return chosen.load() if weights is None else chosen.load(weights)
