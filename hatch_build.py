"""The requirement of burn-import that has its own version: burn-runtime."""

from pathlib import Path
from runpy import run_path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RuntimeRequirement(MetadataHookInterface):
    """Adds ``burn-runtime`` of the version in the file that both projects read."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the requirements: the runtime, and those of the hook's table."""
        constants = run_path(str(Path(self.root) / self.config["version-file"]))
        runtime = f"burn-runtime=={constants['VERSION']}"
        metadata["dependencies"] = [runtime, *self.config["dependencies"]]
