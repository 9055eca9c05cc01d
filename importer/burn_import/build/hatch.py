"""A build hook for hatchling that imports models before a wheel or sdist is packed.

::

    [build-system]
    requires = ["hatchling", "burn-import"]

    [tool.hatch.build.hooks.burn-import]

    [[tool.burn-import.models]]
    input = "models/net.onnx"
    output = "src/app/net.py"
    class-name = "Net"

The models may also stand in the table of the hook. The outputs stand in the source
tree, so that editors, type checkers and editable installs see them; they may be ignored
by git, since the hook makes them artifacts.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from burn_import.build.project import BuildFailed, import_models, project_models


class BurnImportBuildHook(BuildHookInterface[Any]):
    """A build hook that imports the table's models and packs the outputs."""

    PLUGIN_NAME = "burn-import"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Import every model whose output is not up to date.

        Exits with a message if the table is wrong or a model cannot be
        imported.
        """
        root = Path(self.root)
        own = {k: v for k, v in self.config.items() if k == "models"}
        try:
            models = project_models(root, own or None)
            for warning in import_models(models, root):
                self.app.display_warning(warning)
        except BuildFailed as error:
            self.app.abort(str(error))
        for model in models:
            for path in model.files:
                relative = path.relative_to(self.root).as_posix()
                build_data["artifacts"].append(f"/{relative}")


@hookimpl
def hatch_register_build_hook() -> type[BurnImportBuildHook]:
    """Return the hook class to hatchling's plugin manager."""
    return BurnImportBuildHook
