"""A build hook of hatchling: modules are made before a wheel or sdist is packed.

::

    [build-system]
    requires = ["hatchling", "burn-import"]

    [[tool.hatch.build.hooks.burn-import.models]]
    input = "models/net.onnx"
    output = "src/app/net.py"
    class-name = "Net"

Other keys are those of :mod:`burn_import.build.table`: a dtype, shapes, a part.
The outputs stand in the source tree, so that editors, type checkers and editable
installs see them; they may be ignored by git, since the hook makes them artifacts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from burn_import.build.models import Model, bring_up_to_date, configured


class BurnImportBuildHook(BuildHookInterface[Any]):
    """Imports the models of the table and adds the outputs to what is packed."""

    PLUGIN_NAME = "burn-import"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make every output that is not up to date.

        Raises:
            ValueError: the table is wrong, or a model cannot be imported.
        """
        for model in self._models(self.config):
            for warning in bring_up_to_date(model):
                self.app.display_warning(warning)
            for path in (model.output, model.weights):
                relative = path.relative_to(self.root).as_posix()
                build_data["artifacts"].append(f"/{relative}")

    def _models(self, config: Mapping[str, Any]) -> list[Model]:
        return configured(config, Path(self.root))


@hookimpl
def hatch_register_build_hook() -> type[BurnImportBuildHook]:
    """The hook, for hatchling's plugin manager."""
    return BurnImportBuildHook
