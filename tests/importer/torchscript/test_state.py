"""Buffers and attributes that a call changes for the next call."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.options import Options
from burn_ir import UnsupportedModel
from tests.importer.pytorch_files import tensor
from tests.importer.script_files import net

SHAPE = Options(shapes={"x": ("batch", 3)})
X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)

COUNT = """
_0 = torch.add_(self.count, 1)
return torch.div(x, float(self.count))
"""
COUNTED_BRANCH = """
if torch.gt(int(self.count), 1):
  y = torch.mul(x, 3)
else:
  y = x
_0 = torch.add_(self.count, 1)
return y
"""
FIRST_CALL = """
if torch.__not__(bool(self.is_set)):
  _0 = torch.copy_(self.scale, torch.amax(x, [0]))
  _1 = torch.fill_(self.is_set, True)
else:
  pass
return torch.div(x, self.scale)
"""


def results(forward: str, folder: Path, *inputs: Any, **attributes: Any) -> list[Any]:
    """Return the results of calls one after the other, eager and compiled."""
    path = net(forward, **attributes).saved(folder)
    model: Any = load(path, SHAPE)
    eager = [model(burn.tensor(x)).numpy() for x in inputs]
    again: Any = load(path, SHAPE)
    compiled = burn.compile(again)
    for x, expected in zip(inputs, eager, strict=True):
        np.testing.assert_array_equal(compiled(burn.tensor(x)).numpy(), expected)
    return eager


def count() -> Any:
    """Return a number of calls, 0."""
    return tensor("count", np.zeros((), np.int64))


@pytest.mark.parametrize("name", ["count", "num_batches_tracked"])
def test_a_changing_number_is_read_in_each_call(name: str, tmp_path: Path) -> None:
    forward = COUNT.replace("count", name)
    actual = results(forward, tmp_path, X, X, X, **{name: count()})
    for k, result in enumerate(actual, 1):
        np.testing.assert_allclose(result, X / k, rtol=1e-6)


def test_a_branch_on_a_changing_number_is_decided_in_each_call(tmp_path: Path) -> None:
    actual = results(COUNTED_BRANCH, tmp_path, X, X, X, count=count())
    for factor, result in zip((1, 1, 3), actual, strict=True):
        np.testing.assert_allclose(result, X * factor, rtol=1e-6)


def test_the_first_call_may_set_a_buffer(tmp_path: Path) -> None:
    flag = tensor("flag", np.zeros((), bool))
    scale = tensor("scale", np.ones(3, np.float32))
    actual = results(FIRST_CALL, tmp_path, X, X * 2, is_set=flag, scale=scale)
    np.testing.assert_allclose(actual[0], X / X.max(0), rtol=1e-6)
    np.testing.assert_allclose(actual[1], X * 2 / X.max(0), rtol=1e-6)


LEFT = {
    "number": "self.left = torch.add(self.left, 1)\nreturn torch.mul(x, self.left)",
    "tuple": "h, = self.left\nself.left = (torch.add(h, x),)\nreturn (self.left)[0]",
    "list": "_0 = torch.append(self.left, x)\nreturn torch.cat(self.left)",
    "dict": """
h = (self.left)["h"]
_0 = torch._set_item(self.left, "h", torch.add(h, x))
return (self.left)["h"]
""",
}


@pytest.mark.parametrize("kind", LEFT)
def test_what_the_next_call_finds_in_an_attribute(kind: str, tmp_path: Path) -> None:
    zeros = tensor("zeros", np.zeros((1, 3), np.float32))
    before = {"number": 0, "tuple": (zeros,), "list": [zeros], "dict": {"h": zeros}}
    path = net(LEFT[kind], left=before[kind]).saved(tmp_path)
    with pytest.raises(UnsupportedModel, match="attribute 'left', which a call"):
        load(path, SHAPE)


def test_an_attribute_that_is_set_before_it_is_read(tmp_path: Path) -> None:
    forward = """
self.scale = 2.
return torch.mul(x, self.scale)
"""
    path = net(forward, scale=1.0).saved(tmp_path)
    model: Any = load(path, SHAPE)
    np.testing.assert_array_equal(model(burn.tensor(X)).numpy(), X * 2)


def test_an_attribute_that_changes_no_result_is_not(tmp_path: Path) -> None:
    forward = """
if torch.__not__(self.has_warned):
  self.has_warned = True
else:
  pass
return torch.mul(x, 2)
"""
    path = net(forward, has_warned=False).saved(tmp_path)
    model: Any = load(path, SHAPE)
    np.testing.assert_array_equal(model(burn.tensor(X)).numpy(), X * 2)
