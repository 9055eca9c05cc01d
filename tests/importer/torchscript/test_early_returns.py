"""Returns within loops, which TorchScript writes with flags and uninitialized names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.torchscript import read
from burn_ir import UnsupportedModel
from tests.importer.script_files import net
from tests.importer.torchscript.test_control import compare, drawn
from tests.modules import Array

CONVERGING = """
_1 = uninitialized(int)
_2 = uninitialized(Tensor)
_3 = False
_4 = _2
z = x
count = 0
_5 = True
while _5:
  new = torch.mul(torch.tanh(z), 0.5)
  if bool(torch.lt(torch.max(torch.abs(new)), 0.1)):
    _8, _9, _10, _11, _12 = False, True, torch.mul(new, 4), _2, _1
  else:
    count0 = torch.add(count, 1)
    _8, _9, _10, _11, _12 = torch.lt(count0, 3), False, _2, new, count0
  _5, _3, _4, z, count = _8, _9, _10, _11, _12
if _3:
  _13 = _4
else:
  _13 = z
return _13
"""


def test_a_return_within_a_loop_whose_first_round_is_followed(tmp_path: Path) -> None:
    def reference(x: Array) -> Any:
        for _ in range(3):
            x = np.tanh(x) * np.float32(0.5)
            if np.abs(x).max() < 0.1:
                return x * 4
        return x

    x = drawn(31, 2, 3)
    compare(net(CONVERGING).saved(tmp_path), reference, x / 10, x / 4, x * 5)


SEARCHING = """
_0 = uninitialized(Tuple[Tensor, int])
total = torch.zeros_like(torch.select(x, 0, 0))
_1 = torch.size(x, 0)
_2 = False
_3 = _0
total0 = total
_4 = 0
_5 = torch.gt(_1, 0)
while _5:
  total1 = torch.add(total0, torch.select(x, 0, _4))
  if bool(torch.gt(torch.sum(total1), 3)):
    _7, _8, _9 = False, True, ({found}, _4)
  else:
    _7, _8, _9 = True, False, _0
  _10 = torch.add(_4, 1)
  _11 = torch.__and__(torch.lt(_10, _1), _7)
  _5, _2, _3, total0, _4 = _11, _8, _9, total1, _10
if _2:
  _12 = _3
else:
  _12 = (total0, -1)
y, t, = _12
return torch.add(y, t)
"""


def test_a_return_of_a_tuple_within_a_loop(tmp_path: Path) -> None:
    def reference(x: Array) -> Any:
        total = np.zeros(3, np.float32)
        for t, row in enumerate(x):
            total = total + row
            if total.sum() > 3:
                return total * 2 + t
        return total - 1

    x = np.abs(drawn(32, 5, 3))
    path = net(SEARCHING.format(found="torch.mul(total1, 2)")).saved(tmp_path)
    compare(path, reference, x, x * 10, -x, x[:1])


def test_a_return_of_extents_that_nothing_else_has_is_refused(tmp_path: Path) -> None:
    path = net(SEARCHING.format(found="torch.cat([total1, total1])")).saved(tmp_path)
    with pytest.raises(UnsupportedModel, match="line"):
        read(path, {"x": ("batch", 3)})


OPTIONAL = """
outs = annotate(List[Tensor], [x])
if bool(torch.gt(torch.sum(x), 0)):
  _0 = torch.append(outs, torch.exp(x))
  scale : Optional[Tensor] = torch.max(x)
else:
  scale = None
if torch.__isnot__(scale, None):
  y = torch.mul(x, unchecked_cast(Tensor, scale))
else:
  y = torch.neg(x)
return torch.cat([y, torch.cat(outs, 0)], 0)
"""


def test_none_or_a_tensor_after_a_branch(tmp_path: Path) -> None:
    def reference(x: Array) -> Any:
        if x.sum() > 0:
            return np.concatenate([x * x.max(), x, np.exp(x)])
        return np.concatenate([-x, x])

    x = np.abs(drawn(33, 4, 3))
    compare(net(OPTIONAL).saved(tmp_path), reference, x, -x)


UNBOUND = """
rows = torch.list(torch.unbind(x))
backwards = torch.slice(rows, None, None, -1)
outputs = annotate(List[Tensor], [])
outputs0 = outputs
h = torch.zeros_like(torch.select(x, 0, 0))
for i in range(torch.len(backwards)):
  h0 = torch.tanh(torch.add(h, backwards[i]))
  outputs0, h = torch.add_(outputs0, [h0]), h0
_0 = torch.reverse(outputs0)
return torch.stack(outputs0)
"""


def test_an_open_axis_is_unbound(tmp_path: Path) -> None:
    def reference(x: Array) -> Any:
        h, results = np.zeros_like(x[0]), []
        for row in x[::-1]:
            h = np.tanh(h + row)
            results.append(h)
        return np.stack(results[::-1])

    compare(net(UNBOUND).saved(tmp_path), reference, drawn(34, 4, 3), drawn(35, 7, 3))


def test_many_branches_that_leave_none_or_a_tensor(tmp_path: Path) -> None:
    """Each would double the code that follows it."""
    code = "y0 = x\n"
    for i in range(20):
        code += f"""
if bool(torch.gt(torch.sum(x), {i})):
  scale{i} : Optional[Tensor] = torch.max(x)
else:
  scale{i} = None
if torch.__isnot__(scale{i}, None):
  y{i + 1} = torch.mul(y{i}, unchecked_cast(Tensor, scale{i}))
else:
  y{i + 1} = torch.neg(y{i})
"""
    path = net(f"{code}return y20\n").saved(tmp_path)
    with pytest.raises(UnsupportedModel, match="branches of a function leave None"):
        read(path, {"x": ("batch", 3)})
