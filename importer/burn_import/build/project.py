"""The models of a project, for hooks of all build systems.

::

    [[tool.burn-import.models]]
    input = "models/net.onnx"
    output = "src/app/net.py"
    class-name = "Net"

Other keys are those of :mod:`burn_import.build.models`: a dtype, shapes, a part.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from burn_import.build.models import Model, bring_up_to_date, configured


class BuildFailed(ValueError):  # noqa: N818  as burn_import.output.OutputRefused
    """Error that stops a build; the message names the model and the reason."""


def project_table(root: Path) -> Mapping[str, Any]:
    """Return the table ``tool.burn-import`` of ``root/pyproject.toml``, or ``{}``.

    Raises:
        BuildFailed: the file is not valid TOML.
    """
    path = root / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        tools = tomllib.loads(path.read_text("utf-8")).get("tool", {})
    except ValueError as error:
        raise BuildFailed(f"burn-import: pyproject.toml: {error}") from None
    table = tools.get("burn-import", {})
    if not isinstance(table, Mapping):
        raise BuildFailed("burn-import: expected 'tool.burn-import' to be a table")
    return table


def project_models(root: Path, table: Mapping[str, Any] | None = None) -> list[Model]:
    """Return the models of ``table``, or of the project's table if it is None.

    Raises:
        BuildFailed: the table is invalid; the message names the entry.
    """
    try:
        return configured(project_table(root) if table is None else table, root)
    except ValueError as error:
        raise BuildFailed(str(error)) from None


def import_models(models: Iterable[Model], root: Path) -> list[str]:
    """Write every output that is not up to date; return warnings.

    Raises:
        BuildFailed: a model cannot be imported, or an output cannot be written.
    """
    from burn.record import RecordError
    from burn_import.internal import InternalError

    warnings: list[str] = []
    for model in models:
        name = Path(os.path.relpath(model.input, root)).as_posix()
        try:
            warnings += bring_up_to_date(model)
        except InternalError as error:
            raise BuildFailed(
                f"burn-import: {name}: internal error: {error}; this is a defect of "
                "burn-import, please report it with the model"
            ) from error
        except (ValueError, OSError, ImportError, RecordError) as error:
            raise BuildFailed(f"burn-import: {name}: {_plain(error)}") from error
    return warnings


def inputs_inside(models: Iterable[Model], root: Path) -> dict[str, Path]:
    """Return the existing model files in the project, by path from ``root``.

    They include external data, shards and configurations of weights.
    """
    from burn_import.model_files import model_files

    inputs = [
        file
        for model in models
        if model.input.is_file()
        for file in model_files(model.input, model.options.hints.config)
    ]
    relative = [(Path(os.path.relpath(path, root)), path) for path in inputs]
    return {name.as_posix(): path for name, path in relative if ".." not in name.parts}


def _plain(error: Exception) -> str:
    """Return an error's text with terminal control sequences from the model escaped."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in str(error))
