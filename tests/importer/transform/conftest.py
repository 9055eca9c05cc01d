"""The model of all tests of options."""

from pathlib import Path

import pytest

from tests.importer.transform.blocks import two_blocks


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return two dense layers with a residual; ``x`` gives the extents of heads."""
    return two_blocks(tmp_path)
