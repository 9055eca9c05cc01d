"""Settings of the tests of plans of fewer bits."""

import pytest

from burn import nn


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Draw the same weights whatever tests ran before: bounds of noise are of these."""
    nn.init.seed(0)
