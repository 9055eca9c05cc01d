"""Loops with carried values and appended lists; returns and lists in branches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import import load
from tests.importer.script_files import (
    LINEAR,
    Script,
    example,
    module,
    net,
    weight as drawn_weight,
)
from tests.importer.torchscript.test_control import compare, drawn
from tests.modules import Array

GROWING = """
outs = annotate(List[Tensor], [{first}])
h = torch.zeros([3])
for i in range(torch.size(x, 0)):
  h0 = torch.add(torch.mul(h, 0.5), torch.select(x, 0, i))
  _0 = torch.append(outs, h0)
  h = h0
return {result}
"""


def averaged(x: Array) -> Array:
    """Return the moving averages of rows."""
    rows, h = [], np.zeros(3, np.float32)
    for row in x:
        h = h * np.float32(0.5) + row
        rows.append(h)
    return np.array(rows)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("torch.stack(outs)", averaged),
        ("torch.stack(outs, 1)", lambda x: averaged(x).T),
        ("torch.stack(outs, -1)", lambda x: averaged(x).T),
        ("torch.cat(outs, 0)", lambda x: averaged(x).reshape(-1)),
        ("torch.cat(outs, -1)", lambda x: averaged(x).reshape(-1)),
        ("torch.mul(x, torch.len(outs))", lambda x: x * len(x)),
        ("torch.add(torch.sum(torch.stack(outs)), h)", lambda x: None),
    ],
)
def test_a_list_that_grows_in_a_loop(
    result: str, expected: Any, tmp_path: Path
) -> None:
    def reference(x: Array) -> Any:
        rows = averaged(x)
        return rows.sum() + rows[-1] if expected(x) is None else expected(x)

    path = net(GROWING.format(first="", result=result)).saved(tmp_path)
    compare(path, reference, drawn(11, 2, 3), drawn(12, 5, 3))


def test_a_list_that_has_something_before_the_loop(tmp_path: Path) -> None:
    code = GROWING.format(first="torch.ones([3])", result="torch.stack(outs)")

    def reference(x: Array) -> Any:
        return np.concatenate([np.ones((1, 3), np.float32), averaged(x)])

    path = net(code).saved(tmp_path)
    compare(path, reference, drawn(13, 2, 3), drawn(14, 4, 3))


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [("1", "n", 1), ("torch.sub(n, 1)", "-1", -1), ("0", "n", 2), ("n", "1", -3)],
)
def test_a_loop_counts_from_any_number_by_any_step(
    low: str, high: str, step: int, tmp_path: Path
) -> None:
    code = f"""
n = torch.size(x, 0)
y = torch.zeros([3])
for i in range(torch.__range_length({low}, {high}, {step})):
  place = torch.__derive_index(i, {low}, {step})
  y = torch.add(torch.mul(y, 0.5), torch.select(x, 0, torch.remainder(place, n)))
return y
"""

    def reference(x: Array) -> Any:
        n = len(x)
        values = {"n": n, "torch.sub(n, 1)": n - 1}
        first, last = (values.get(word) for word in (low, high))
        first = int(low) if first is None else first
        last = int(high) if last is None else last
        y = np.zeros(3, np.float32)
        for index in range(first, last, step):
            y = y * np.float32(0.5) + x[index % n]
        return y

    path = net(code).saved(tmp_path)
    compare(path, reference, *(drawn(15 + rows, rows, 3) for rows in (1, 2, 7, 8)))


@pytest.mark.parametrize("form", ["(a, b)", "[a, b]", "((a, ), [b, 2])"])
def test_a_loop_carries_tuples_and_lists(form: str, tmp_path: Path) -> None:
    parts = {"(a, b)": "s[0], s[1]", "[a, b]": "s[0], s[1]"}
    names = parts.get(form, "s[0][0], s[1][0]")
    code = f"""
a, b = x, torch.exp(x)
s = {form}
for i in range(torch.size(x, 0)):
  b, a = {names}
  s0 = {form}
  s = s0
c, d = {names}
return torch.sub(c, torch.mul(d, 2))
"""

    def reference(x: Array) -> Any:
        c, d = (x, np.exp(x)) if len(x) % 2 == 0 else (np.exp(x), x)
        return c - 2 * d

    path = net(code).saved(tmp_path)
    compare(path, reference, drawn(20, 2, 3), drawn(21, 3, 3))


EARLY = """
_0 = uninitialized(Tensor)
if bool(torch.gt(torch.sum(x), 0)):
  y = torch.exp(x)
  if bool(torch.gt(torch.max(y), 3)):
    _3, _4, _5 = True, torch.mul(y, 2), _0
  else:
    _3, _4, _5 = False, _0, torch.add(y, 1)
  _1, _2, z = _3, _4, _5
else:
  _1, _2, z = False, _0, x
if _1:
  _8 = _2
else:
  w = torch.neg(z)
  _8 = torch.mul(w, 3)
return _8
"""


def test_a_return_within_a_branch(tmp_path: Path) -> None:
    def reference(x: Array) -> Any:
        if x.sum() > 0:
            y = np.exp(x)
            if y.max() > 3:
                return y * 2
            x = y + 1
        return -x * 3

    x = np.abs(drawn(22, 2, 3))
    compare(net(EARLY).saved(tmp_path), reference, x / 10, x + 2, -x)


def test_lists_and_dicts_that_change_in_a_branch(tmp_path: Path) -> None:
    code = """
outs, d = [x], {"a": [x], "b": x}
if bool(torch.gt(torch.sum(x), 0)):
  _0 = torch.append(outs, torch.mul(x, 2))
  _1 = torch.append(d["a"], torch.exp(x))
  d["b"] = torch.mul(x, 5)
else:
  _2 = torch.append(outs, torch.mul(x, 3))
  _3 = torch.append(d["a"], torch.neg(x))
return torch.add(torch.cat(outs, 0), torch.add(torch.cat(d["a"], 0), torch.sum(d["b"])))
"""

    def reference(x: Array) -> Any:
        more = (2 * x, np.exp(x), 5 * x) if x.sum() > 0 else (3 * x, -x, x)
        outs, a = np.concatenate([x, more[0]]), np.concatenate([x, more[1]])
        return outs + a + more[2].sum()

    x = np.abs(drawn(23, 2, 3))
    compare(net(code).saved(tmp_path), reference, x, -x)


def test_a_row_at_a_computed_place_is_changed(tmp_path: Path) -> None:
    code = """
y = torch.zeros([4, 3])
n = torch.remainder(torch.size(x, 0), 4)
_0 = torch.copy_(torch.select(y, 0, n), torch.sum(x, [0]))
return y
"""

    def reference(x: Array) -> Any:
        y = np.zeros((4, 3), np.float32)
        y[len(x) % 4] = x.sum(0)
        return y

    path = net(code).saved(tmp_path)
    compare(path, reference, drawn(24, 2, 3), drawn(25, 7, 3))


def test_a_loop_whose_first_round_is_followed_calls_a_layer(tmp_path: Path) -> None:
    """The first condition is known, so that the layer's name is bound before it."""
    code = {
        "__torch__.py": """class Net(Module):
  __parameters__ = []
  __buffers__ = []
  first : __torch__.torch.nn.modules.linear.Linear
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    n = torch.zeros(annotate(List[int], []))
    x0 = x
    n0 = n
    _0 = bool(torch.lt(n, 3.))
    while _0:
      first = self.first
      shift = torch.mul(x0, 0.5)
      x1 = torch.add(torch.tanh((first).forward(x0, )), shift)
      n1 = torch.add(n0, 1)
      _0, x0, n0 = bool(torch.lt(n1, 3.)), x1, n1
    return x0
""",
        "__torch__/torch/nn/modules/linear.py": LINEAR,
    }
    (weight, stored), (bias, other) = drawn_weight("0", 3, 3), drawn_weight("1", 3)
    layer = module("torch.nn.modules.linear.Linear", weight=stored, bias=other)
    script = Script(module("Net", first=layer), code, [example("Float", 2, 3)])

    def reference(x: Array) -> Array:
        for _ in range(3):
            x = np.tanh(x @ weight.T + bias) + x * np.float32(0.5)
        return x

    path = script.saved(tmp_path)
    compare(path, reference, drawn(15, 2, 3), drawn(16, 5, 3))
    assert set(load(path).state_dict()) == {"first.weight", "first.bias"}
