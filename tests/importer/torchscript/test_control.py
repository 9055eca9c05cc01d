"""Branches and loops of scripts: interpreted if static, else written as nodes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torchscript import read
from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_ir import UnsupportedModel
from tests.importer.script_files import example, net
from tests.modules import Array

SHAPE = Options(shapes={"x": ("batch", 3)})


def drawn(seed: int, *shape: int) -> Array:
    """Return random inputs."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def compare(path: Path, reference: Any, *inputs: Array) -> None:
    """Return if the model's outputs equal the reference's."""
    model: Any = load(path, SHAPE)
    for x in inputs:
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, reference(x), rtol=1e-5, atol=1e-6)


def test_what_is_known_is_not_decided_again(tmp_path: Path) -> None:
    forward = """
if self.training:
  x0 = torch.dropout(x, 0.5, True)
else:
  x0 = x
if torch.__isnot__(mask, None):
  x1 = torch.mul(x0, unchecked_cast(Tensor, mask))
else:
  x1 = x0
if torch.ne(torch.dim(x1), 2):
  ops.prim.RaiseException("expected two axes")
else:
  pass
for i in range(torch.size(x1, 1)):
  x1 = torch.add(x1, i)
return x1
"""
    parameters = "x: Tensor,\n    mask: Optional[Tensor]=None"
    path = net(forward, parameters=parameters).saved(tmp_path)
    compare(path, lambda x: x + 3, drawn(0, 2, 3))
    text = import_model(path, SHAPE).text
    assert "if " not in text.partition("def __call__")[2]
    assert "for " not in text.partition("def __call__")[2]


BRANCH = """
if bool(torch.gt(torch.sum(x), 0)):
  y, n = torch.relu(x), 2
else:
  y0 = torch.neg(x)
  y, n = torch.mul(y0, 3), 5
return torch.mul(y, n)
"""


def test_a_branch_on_a_tensor(tmp_path: Path) -> None:
    path = net(BRANCH).saved(tmp_path)
    x = np.abs(drawn(1, 4, 3))

    def reference(x: Array) -> Any:
        return np.maximum(x, 0) * 2 if x.sum() > 0 else -x * 15

    compare(path, reference, x, -x)


def test_a_side_that_raises_is_not_taken(tmp_path: Path) -> None:
    forward = """
if bool(torch.gt(torch.max(x), 9)):
  ops.prim.RaiseException("too large", "builtins.ValueError")
  y = x
else:
  y = torch.exp(x)
return y
"""
    compare(net(forward).saved(tmp_path), np.exp, drawn(2, 2, 3))


def test_and_or(tmp_path: Path) -> None:
    forward = """
_0 = bool(torch.gt(torch.sum(x), 0))
if _0:
  _1 = bool(torch.lt(torch.max(x), 1))
else:
  _1 = False
if _1:
  y = torch.exp(x)
else:
  y = torch.neg(x)
return y
"""
    path = net(forward).saved(tmp_path)

    def reference(x: Array) -> Any:
        return np.exp(x) if x.sum() > 0 and x.max() < 1 else -x

    compare(path, reference, np.full((2, 3), 0.5, np.float32), drawn(3, 2, 3))
    assert " & " in import_model(path, SHAPE).text


WHILE = """
y = x
i = 0
_0 = bool(torch.lt(torch.sum(y), 20))
while _0:
  y0 = torch.mul(y, 2)
  i0 = torch.add(i, 1)
  _1 = bool(torch.lt(torch.sum(y0), 20))
  _0, y, i = _1, y0, i0
return torch.add(y, i)
"""


def test_while(tmp_path: Path) -> None:
    def reference(x: Array) -> Any:
        rounds = 0
        while x.sum() < 20:
            x, rounds = x * 2, rounds + 1
        return x + rounds

    path = net(WHILE).saved(tmp_path)
    compare(path, reference, np.abs(drawn(4, 2, 3)), np.abs(drawn(5, 5, 3)))


def test_a_loop_over_an_extent_that_varies(tmp_path: Path) -> None:
    forward = """
y = torch.zeros([3])
for i in range(torch.size(x, 0)):
  y = torch.add(torch.mul(y, 0.5), torch.select(x, 0, i))
return y
"""

    def reference(x: Array) -> Any:
        y = np.zeros(3, np.float32)
        for row in x:
            y = y * np.float32(0.5) + row
        return y

    path = net(forward).saved(tmp_path)
    compare(path, reference, drawn(6, 2, 3), drawn(7, 5, 3))


def test_a_long_loop_stays_one(tmp_path: Path) -> None:
    forward = """
y = x
for i in range(1000):
  y = torch.add(torch.mul(y, 0.5), i)
return y
"""

    def reference(x: Array) -> Any:
        for i in range(1000):
            x = x * np.float32(0.5) + np.float32(i)
        return x

    path = net(forward).saved(tmp_path)
    compare(path, reference, drawn(8, 2, 3))
    assert len(import_model(path, SHAPE).text.splitlines()) < 60


def test_lists_and_dicts_that_are_known(tmp_path: Path) -> None:
    forward = """
outs = annotate(List[Tensor], [])
for i in range(3):
  _0 = torch.append(outs, torch.mul(x, i))
d = {"all": torch.stack(outs), "first": (outs)[0]}
_1 = torch.__contains__(d, "none")
if _1:
  y = d["none"]
else:
  y = torch.add(torch.sum(d["all"], [0]), d["first"])
return y
"""
    compare(net(forward).saved(tmp_path), lambda x: 3 * x, drawn(9, 2, 3))


def test_a_change_in_place_within_a_branch(tmp_path: Path) -> None:
    forward = """
y = torch.exp(x)
if bool(torch.gt(torch.sum(x), 0)):
  _0 = torch.mul_(y, 2)
else:
  pass
return torch.add(y, 1)
"""

    def reference(x: Array) -> Any:
        return np.exp(x) * (2 if x.sum() > 0 else 1) + 1

    x = np.abs(drawn(10, 2, 3))
    compare(net(forward).saved(tmp_path), reference, x, -x)


@pytest.mark.parametrize(
    ("forward", "line", "message"),
    [
        (
            "outs = [x]\n"
            "for i in range(2):\n"
            "  if bool(torch.gt(torch.sum(x), 0)):\n"
            "    _0 = torch.append(outs, torch.exp(x))\n"
            "  else:\n"
            "    pass\n"
            "return torch.stack(outs)",
            9,
            "a list changes in a branch or loop",
        ),
        (
            "outs = [None, x]\nn = torch.size(x, 0)\nreturn outs[torch.sub(n, 1)]",
            9,
            "an item is known only at run time",
        ),
        ("return [y for y in x]", 7, "an expression of kind ListComp"),
        ("assert x\nreturn x", 7, "a statement of kind Assert"),
        ("return ops.torchvision.qnms(x, x, 0.5)", 7, "ops.torchvision.qnms is not"),
        (
            "y = torch.reshape(torch.t(x), [-1])\n"
            "_0 = torch.add_(x, 1)\nreturn torch.relu(y)",
            9,
            "a tensor is read after torch.add_",
        ),
    ],
)
def test_the_construct_that_is_not_supported_is_named(
    forward: str, line: int, message: str, tmp_path: Path
) -> None:
    path = net(forward).saved(tmp_path)
    expected = rf"code/__torch__.py, line {line}: {message}"
    with pytest.raises(UnsupportedModel, match=expected):
        read(path, {"x": ("batch", 3)})


def test_extents_that_two_sides_differ_in_keep_their_rank(tmp_path: Path) -> None:
    forward = """
rows = torch.index(x, [torch.gt(torch.select(x, 1, 0), 0)])
if torch.eq(torch.numel(rows), 0):
  keep = torch.empty([0], dtype=4)
else:
  keep = torch.select(torch.nonzero(torch.select(rows, 1, 1)), 1, 0)
return torch.index(rows, [torch.slice(keep, 0, 0, 2)])
"""
    model: Any = load(net(forward, example("Float", 4, 3)).saved(tmp_path))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for given, expected in ((x, x[1:3]), (-x, np.zeros((0, 3), np.float32))):
        actual = model(burn.tensor(given)).numpy()
        np.testing.assert_array_equal(actual, expected)


def test_the_type_of_what_is_given_is_known(tmp_path: Path) -> None:
    forward = """
if isinstance(x, Tensor):
  rows = [x, x]
else:
  rows = annotate(List[Tensor], [])
if isinstance(rows, List[Tensor]):
  y = torch.pad_sequence(rows, True)
else:
  y = torch.zeros([2, 2, 3])
return torch.add(y, 1)
"""
    path = net(forward, example("Float", 2, 3)).saved(tmp_path)
    compare(path, lambda x: np.stack([x, x]) + 1, drawn(0, 2, 3))


def test_extremes_of_extents_are_computed(tmp_path: Path) -> None:
    forward = """
n = torch.size(x, 0)
sizes = [n, torch.size(x, 1), 4]
x0 = torch.mul(x, torch.min(sizes))
return torch.add(x0, torch.mul(ops.prim.max(n, 4), ops.prim.min(n, 2)))
"""
    path = net(forward).saved(tmp_path)

    def reference(x: Array) -> Array:
        n = len(x)
        return x * min(n, 3, 4) + max(n, 4) * min(n, 2)

    compare(path, reference, drawn(0, 1, 3), drawn(1, 5, 3))


def test_an_index_behind_and_is_read_only_where_it_exists(tmp_path: Path) -> None:
    forward = """
if torch.gt(torch.size(x, 0), 2):
  t = torch.lt(float(torch.sum(torch.select(x, 0, 2))), 0.)
else:
  t = False
if t:
  y = torch.mul(x, 2)
else:
  y = torch.neg(x)
return y
"""
    path = net(forward).saved(tmp_path)

    def reference(x: Array) -> Array:
        return x * 2 if len(x) > 2 and x[2].sum() < 0 else -x

    negative = -np.abs(drawn(0, 4, 3))
    compare(path, reference, drawn(0, 1, 3), negative, -negative)


def test_what_is_counted_is_whole(tmp_path: Path) -> None:
    path = net("return torch.bincount(x, None, 4)").saved(tmp_path)
    model: Any = load(path, Options(shapes={"x": ("n",)}))
    actual = model(burn.tensor(np.array([1, 3, 1], np.int64))).numpy()
    np.testing.assert_array_equal(actual, [0, 2, 0, 1])
