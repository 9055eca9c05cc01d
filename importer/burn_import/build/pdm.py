"""A build hook for pdm-backend that imports models before files are collected.

::

    [build-system]
    requires = ["pdm-backend", "burn-import"]
    build-backend = "pdm.backend"

    [[tool.burn-import.models]]
    input = "models/net.onnx"
    output = "src/app/net.py"

pdm-backend calls the functions of this module, its entry point ``pdm.build.hook``, in
every build of an environment that burn-import is installed in. Without the table they
do nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pdm.backend.hooks import Context


def pdm_build_hook_enabled(context: Context) -> bool:
    """Return whether the project has the table ``tool.burn-import``."""
    from burn_import.build.project import BuildFailed, project_table

    try:
        return bool(project_table(context.root))
    except BuildFailed as error:
        raise SystemExit(str(error)) from None


def pdm_build_initialize(context: Context) -> None:
    """Import the models that are not up to date.

    Raises:
        SystemExit: the table is wrong or a model cannot be imported; with the message.
    """
    from burn_import.build.project import BuildFailed, import_models, project_models

    try:
        for warning in import_models(project_models(context.root), context.root):
            print(f"burn-import: {warning}")
    except BuildFailed as error:
        raise SystemExit(str(error)) from None


def pdm_build_update_files(context: Context, files: dict[str, Path]) -> None:
    """Add the models to a source distribution, which has only the package."""
    from burn_import.build.project import inputs_inside, project_models

    if context.target == "sdist":
        files.update(inputs_inside(project_models(context.root), context.root))
