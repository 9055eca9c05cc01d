"""Random operators have the right distribution, and draw new numbers each time."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from tests.importer.aten.draws import DRAWS, Draw
from tests.importer.aten.programs import written
from tests.importer.aten.torch_programs import arrays, called, tensor
from tests.importer.exported_files import saved


def named(draw: Draw) -> str:
    return draw.case.name


@pytest.mark.parametrize("draw", DRAWS, ids=named)
def test_numbers_are_those_that_were_asked_for(draw: Draw, tmp_path: Path) -> None:
    model: Any = load(saved(tmp_path, written(draw.case), {}))
    given = [burn.tensor(array) for array in draw.case.arrays(0)]
    first, second = (np.asarray(model(*given).numpy()) for _ in range(2))
    draw.check(first)
    draw.check(second)
    assert not np.array_equal(first, second)


@pytest.mark.torch
@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.parametrize("draw", DRAWS, ids=named)
def test_they_are_those_of_pytorch(draw: Draw) -> None:
    (result,) = arrays(called(draw.case)(*map(tensor, draw.case.arrays(0))))
    draw.check(result)
