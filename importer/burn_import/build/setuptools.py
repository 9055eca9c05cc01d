"""A hook for setuptools that imports models before ``build_py`` copies the packages.

::

    [build-system]
    requires = ["setuptools>=70.1", "burn-import"]
    build-backend = "setuptools.build_meta"

    [[tool.burn-import.models]]
    input = "models/net.onnx"
    output = "src/app/net.py"

Setuptools calls :func:`finalize` in every build of an environment that burn-import is
installed in; without the table it does nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setuptools import Distribution

#: The endings of the names of a record's files, after the module's name.
RECORD_ENDS = (".safetensors", ".safetensors.index.json", "-*-of-*.safetensors")


def finalize(distribution: Distribution) -> None:
    """Install the import step in a project with the table ``tool.burn-import``.

    Entry point of ``setuptools.finalize_distribution_options``.

    Raises:
        SystemExit: the table is invalid; carries the message.
    """
    from burn_import.build.project import BuildFailed, project_models, project_table

    root = Path.cwd()
    try:
        models = project_models(root) if project_table(root) else []
    except BuildFailed as error:
        raise SystemExit(f"error: {error}") from None
    if models:
        base: Any = distribution.get_command_class("build_py")
        distribution.cmdclass["build_py"] = _build_py(base, models, root)


def _build_py(base: Any, models: list[Any], root: Path) -> type[Any]:
    """Return a ``build_py`` that imports the models first and packs their records."""

    class BuildPy(base):  # type: ignore[misc]
        def finalize_options(self) -> None:
            super().finalize_options()
            names = [
                f"{model.output.stem}{end}"  # sharded or not is known after the import
                for model in models
                if model.record
                for end in RECORD_ENDS
            ]
            current: dict[str, list[str]] = getattr(self, "package_data", None) or {}
            self.package_data = {**current, "": [*current.get("", ()), *names]}

        def run(self) -> None:
            from burn_import.build.project import BuildFailed, import_models

            try:
                for warning in import_models(models, root):
                    self.warn(warning)
            except BuildFailed as error:
                raise SystemExit(f"error: {error}") from None
            super().run()

        def get_source_files(self) -> list[str]:
            """Return the files of a source distribution, including the models."""
            from burn_import.build.project import inputs_inside

            return [*super().get_source_files(), *inputs_inside(models, root)]

    return BuildPy
