"""The model that all tests of options are about."""

from pathlib import Path

import pytest

from tests.importer.transform.blocks import two_blocks


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Two dense layers with a residual, heads split by the extents of ``x``."""
    return two_blocks(tmp_path)
