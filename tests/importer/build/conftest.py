"""A package that hatchling builds."""

from pathlib import Path

import pytest

from tests.importer.build.test_build_hook import PYPROJECT, write_model


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose outputs git ignores, with the hook installed."""
    plugin = tmp_path / "installed" / "burn_import_hook-1.dist-info"
    plugin.mkdir(parents=True)
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: burn-import-hook\n")
    (plugin / "entry_points.txt").write_text(
        "[hatch]\nburn-import = burn_import.build.hatch\n"
    )
    monkeypatch.syspath_prepend(str(plugin.parent))
    root = tmp_path / "project"
    (root / "src" / "sample").mkdir(parents=True)
    (root / "models").mkdir()
    (root / "src" / "sample" / "__init__.py").touch()
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / ".gitignore").write_text("/src/sample/net.*\n")
    write_model(root / "models" / "net.onnx", 1)
    monkeypatch.chdir(root)
    return root
