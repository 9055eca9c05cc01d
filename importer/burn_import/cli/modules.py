"""Loading of Python files that contain a module, for commands that take one."""

import importlib.util
import inspect
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from traceback import walk_tb
from types import CodeType, ModuleType
from typing import Any

from burn.nn import Module
from burn.record import RecordError
from burn.record.shards import stored_at
from burn.store.report import WeightsError
from burn_import.foreign import missing_remedy
from burn_import.output import OutputRefused, read_header

#: Paths of the files that commands of this process executed.
EXECUTED: set[str] = set()


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

    ``name`` selects the class; by default it is the last one with weights
    (``WEIGHTS``) or a ``load`` of its own. The file is executed and the weights are
    loaded.

    Raises:
        OutputRefused: the file or class does not exist, the class is not a module, or
            the weights do not fit it.
    """
    if weights is not None and not stored_at(weights).exists():
        raise OutputRefused(
            f"expected the record of the weights, there is no {str(weights)!r}",
            missing_remedy(weights),
        )
    module = _executed(path)
    classes = [
        value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and (key == name if name else _has_weights(value))
    ]
    if not classes:
        expected = f"a class {name!r}" if name else "a class with weights"
        raise OutputRefused(f"{path}: expected {expected}", _classes_in(module))
    chosen: Any = classes[-1]
    # A standalone file has a class Module of its own.
    own = vars(module).get("Module", Module)
    bases = (Module, own) if own.__module__ == module.__name__ else Module
    if not issubclass(chosen, bases):
        raise OutputRefused(f"{path}: expected a module of burn, got {chosen.__name__}")
    try:
        return chosen.load() if weights is None else chosen.load(weights)
    except RecordError as error:
        if weights is None:
            raise
        raise no_record(error) from error
    except WeightsError as error:
        raise OutputRefused(str(error), _sizes_of(chosen, error)) from error


def _has_weights(value: type) -> bool:
    """Return whether a class has a record of its own, or a method that loads one."""
    own = vars(value)
    return "WEIGHTS" in own or ("load" in own and "load_weights" not in own)


def no_record(error: RecordError) -> OutputRefused:
    """Return the refusal of a file of ``--weights`` that is no record."""
    return OutputRefused(
        f"expected a record of weights: {error}",
        "Pass the .safetensors file that save_weights or burn-import wrote.",
    )


def _sizes_of(chosen: type, error: WeightsError) -> str:
    """Return a hint with the arguments of a class, if weights have other shapes."""
    names = list(inspect.signature(chosen).parameters)
    if error.report is None or not error.report.mis_shaped or not names:
        return ""
    return (
        f"If {chosen.__name__} had other {', '.join(names)} when they were trained, "
        "change the default in the file."
    )


def _executed(path: Path) -> ModuleType:
    """Return the module of a Python file, which is executed.

    Raises:
        OutputRefused: there is no such file, or it imports a package that is not
            installed.
    """
    if not path.is_file():
        raise OutputRefused(
            f"expected a Python file, there is no file {str(path)!r}",
            missing_remedy(path),
        )
    if path.suffix != ".py":
        raise OutputRefused(
            f"expected a Python file that burn-import wrote, got {path.name!r}",
            f"Import the model first: burn-import {path.name} -o net.py.",
        )
    loader = CurrentSource(path.stem, str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=loader)
    if spec is None or spec.loader is None:
        raise OutputRefused(f"expected a Python file, got {str(path)!r}")
    EXECUTED.add(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise OutputRefused(f"{path}: needs {error.name!r}, not installed") from error
    return module


def _classes_in(module: ModuleType) -> str:
    """Return a hint with the classes of a module that have weights."""
    names = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type)
        and _has_weights(value)
        and value.__module__ == module.__name__
    ]
    return f"The file has {', '.join(names)}." if names else ""


def module_failure(error: BaseException) -> OutputRefused | None:
    """Return the problem if ``error`` was raised in a file that a command executed.

    A failure of a file that its owner may have edited is no defect of burn-import.
    """
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename in EXECUTED:
        path, line, reason = error.filename, error.lineno, f"SyntaxError: {error.msg}"
        return _failure(Path(str(path)), line, reason)
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_code.co_filename in EXECUTED
    ]
    if not frames or _is_unedited(Path(frames[-1][0])):
        return None
    return _failure(Path(frames[-1][0]), frames[-1][1], reason)


def _is_unedited(path: Path) -> bool:
    digests = read_header(path)
    return digests is not None and digests.body == digests.actual


def _failure(path: Path, line: int | None, reason: str) -> OutputRefused:
    message = " ".join(reason.split())
    return OutputRefused(
        f"{path.name}, line {line}: expected a module that runs, got {message}",
        "Correct the file, or import the model again.",
    )
