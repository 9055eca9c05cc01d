"""Scripts with arguments that are numbers: scalar inputs of the module."""

from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn_import import load
from burn_import.options import Options
from tests.importer.script_files import net
from tests.importer.torchscript.test_control import drawn
from tests.modules import Array

SHAPE = Options(shapes={"x": ("batch", 3)})


def called(model: Any, x: Array, *numbers: float) -> Array:
    """Return the result for numbers as tensors of the dtypes of TorchScript."""
    scalars = (burn.tensor(np.asarray(number)) for number in numbers)
    result: Array = model(burn.tensor(x), *scalars).numpy()
    return result


def test_numbers_are_inputs(tmp_path: Path) -> None:
    forward = """
if is_negated:
  y = torch.neg(x)
else:
  y = x
for i in range(count):
  y = torch.add(torch.mul(y, scale), i)
return y
"""
    kinds = "count: int,\n    scale: float,\n    is_negated: bool"
    parameters = f"x: Tensor,\n    {kinds},\n    unused: int=3"
    model = load(net(forward, parameters=parameters).saved(tmp_path), SHAPE)
    x = drawn(40, 2, 3)
    for count, scale, is_negated in ((0, 1.5, True), (3, 0.5, False), (2, -1.0, True)):
        expected = -x if is_negated else x
        for i in range(count):
            expected = expected * np.float32(scale) + i
        actual = called(model, x, count, scale, is_negated)
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_loop_with_a_step_that_is_an_input(tmp_path: Path) -> None:
    forward = """
y = torch.sum(x)
_0 = torch.__range_length(start, end, step)
for _1 in range(_0):
  i = torch.__derive_index(_1, start, step)
  y = torch.add(torch.mul(y, 0.5), i)
return y
"""
    parameters = "x: Tensor,\n    start: int,\n    end: int,\n    step: int"
    model = load(net(forward, parameters=parameters).saved(tmp_path), SHAPE)
    x = drawn(41, 2, 3)
    for ends in ((0, 7, 3), (0, 6, 3), (5, 0, -2), (5, 1, -2), (3, 3, 1), (3, 0, 2)):
        expected = x.sum()
        for i in range(*ends):
            expected = expected * np.float32(0.5) + i
        actual = called(model, x, *ends)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
