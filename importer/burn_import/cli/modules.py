"""Modules in files of Python, for commands that take one."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from burn.nn import Module
from burn_import.output import OutputRefused


class _CurrentSource(SourceFileLoader):
    """A loader that compiles the file anew, and leaves no bytecode beside it.

    Bytecode counts as that of a file of the same size and second, so that it may be of
    the source before an edit.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def load_module(path: Path, weights: Path | None = None, name: str = "") -> Any:
    """Return the module in a generated (or edited) file, with its weights.

    The class is the one called ``name``, else the last one with a ``load``. The file
    is executed.

    Raises:
        OutputRefused: there is no such file or class, or it is none of Burn.
    """
    if not path.is_file():
        raise OutputRefused(f"expected a Python file, got {str(path)!r}")
    loader = _CurrentSource(path.stem, str(path))
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
