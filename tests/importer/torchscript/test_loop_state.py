"""Loops that change outer tensors and lists in place, and read growing lists."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.torchscript import read
from burn_ir import UnsupportedModel
from tests.importer.script_files import net
from tests.importer.torchscript.test_control import compare, drawn
from tests.modules import Array


def check(code: str, reference: Any, folder: Path) -> None:
    """Compare a program with NumPy for one row, two and seven."""
    path = net(code).saved(folder)
    compare(path, reference, *(drawn(30 + rows, rows, 3) for rows in (1, 2, 7)))


@pytest.mark.parametrize("alias", ["y", "torch.detach(y)"])
def test_rows_that_a_loop_sets(alias: str, tmp_path: Path) -> None:
    code = f"""
y, h = torch.zeros_like(x), torch.zeros([3])
z = {alias}
for i in range(torch.size(x, 0)):
  h0 = torch.add(torch.mul(h, 0.5), torch.select(x, 0, i))
  _0 = torch.copy_(torch.select(y, 0, i), h0)
  h = h0
return torch.add(y, torch.sum(y))
"""

    def reference(x: Array) -> Any:
        y, h = np.zeros_like(x), np.zeros(3, np.float32)
        for i, row in enumerate(x):
            y[i] = h = h * np.float32(0.5) + row
        return y + y.sum()

    check(code, reference, tmp_path)


def test_a_name_that_is_added_to_in_place(tmp_path: Path) -> None:
    code = """
h = torch.zeros([3])
total = h
for i in range(torch.size(x, 0)):
  h = torch.add_(h, torch.select(x, 0, i))
return torch.add(h, total)
"""
    check(code, lambda x: 2 * x.sum(0), tmp_path)


def test_a_loop_within_a_loop_changes_a_tensor_in_place(tmp_path: Path) -> None:
    code = """
y = torch.zeros_like(x)
n = torch.size(x, 0)
for i in range(n):
  for j in range(n):
    row = torch.mul(torch.select(x, 0, j), 0.5)
    _0 = torch.add_(torch.select(y, 0, i), row)
  _1 = torch.mul_(torch.select(y, 0, i), i)
return y
"""

    def reference(x: Array) -> Any:
        return np.arange(len(x), dtype=np.float32)[:, None] * x.sum(0) / 2

    check(code, reference, tmp_path)


STEPS: dict[str, tuple[str, Callable[[list[Array], Array], list[Array]]]] = {
    "items that are set": (
        "_0 = torch._set_item(s, 0, torch.add(torch.tanh(s[1]), row))\n"
        "  _1 = torch._set_item(s, 1, torch.mul(s[0], 0.5))",
        lambda s, row: [np.tanh(s[1]) + row, (np.tanh(s[1]) + row) / 2],
    ),
    "a queue": (
        "_0 = torch.append(s, torch.add(torch.tanh(s[0]), row))\n"
        "  _1 = torch.pop(s, 0)",
        lambda s, row: [s[1], np.tanh(s[0]) + row],
    ),
    "a list that is turned around": (
        "_0 = torch.reverse(s)\n  _1 = torch._set_item(s, 0, torch.add(s[0], row))",
        lambda s, row: [s[1] + row, s[0]],
    ),
}


@pytest.mark.parametrize("kind", STEPS)
def test_a_list_whose_items_a_loop_replaces(kind: str, tmp_path: Path) -> None:
    step, next_items = STEPS[kind]
    code = f"""
s = [torch.zeros([3]), torch.ones([3])]
for i in range(torch.size(x, 0)):
  row = torch.select(x, 0, i)
  {step}
return torch.sub(s[0], torch.mul(s[1], 2))
"""

    def reference(x: Array) -> Any:
        s = [np.zeros(3, np.float32), np.ones(3, np.float32)]
        for row in x:
            s = next_items(s, row)
        return s[0] - 2 * s[1]

    check(code, reference, tmp_path)


def test_a_dict_of_states_that_a_loop_replaces(tmp_path: Path) -> None:
    code = """
s = {"h": (torch.zeros([3]), torch.ones([3]))}
for i in range(torch.size(x, 0)):
  h, c = s["h"]
  c0 = torch.add(torch.mul(c, 0.5), torch.select(x, 0, i))
  _0 = torch._set_item(s, "h", (torch.tanh(torch.add(h, c0)), c0))
h0, c1 = s["h"]
return torch.add(h0, c1)
"""

    def reference(x: Array) -> Any:
        h, c = np.zeros(3, np.float32), np.ones(3, np.float32)
        for row in x:
            c = c / 2 + row
            h = np.tanh(h + c)
        return h + c

    check(code, reference, tmp_path)


def test_rounds_read_what_was_appended_last(tmp_path: Path) -> None:
    code = """
outs = [torch.ones([3])]
for i in range(torch.size(x, 0)):
  h = torch.add(torch.tanh(outs[-1]), torch.select(x, 0, i))
  h0 = torch.mul(h, torch.len(outs))
  _0 = torch.append(outs, h0)
return torch.add(torch.stack(outs), torch.mul(outs[-1], outs[0]))
"""

    def reference(x: Array) -> Any:
        outs = [np.ones(3, np.float32)]
        for row in x:
            outs.append((np.tanh(outs[-1]) + row) * len(outs))
        return np.stack(outs) + outs[-1] * outs[0]

    check(code, reference, tmp_path)


def test_a_list_of_numbers_that_grows(tmp_path: Path) -> None:
    code = """
places = annotate(List[int], [])
n = torch.size(x, 0)
for i in range(n):
  _0 = torch.append(places, torch.remainder(torch.mul(i, 3), n))
y = torch.zeros_like(x)
for j in range(torch.len(places)):
  _1 = torch.copy_(torch.select(y, 0, j), torch.select(x, 0, places[j]))
return y
"""
    check(code, lambda x: x[np.arange(len(x)) * 3 % len(x)], tmp_path)


def test_several_tensors_are_appended_in_a_round(tmp_path: Path) -> None:
    code = """
outs = annotate(List[Tensor], [])
for i in range(torch.size(x, 0)):
  row = torch.select(x, 0, i)
  _0 = torch.append(outs, torch.exp(row))
  _1 = torch.append(outs, torch.neg(row))
again = annotate(List[Tensor], [])
for j in range(torch.len(outs)):
  _2 = torch.append(again, torch.mul(outs[j], 2))
return torch.stack(again)
"""

    def reference(x: Array) -> Any:
        return 2 * np.stack([np.exp(x), -x], 1).reshape(-1, 3)

    check(code, reference, tmp_path)


def test_an_item_at_a_computed_place(tmp_path: Path) -> None:
    code = """
s = [torch.zeros([3]), torch.ones([3]), torch.sum(x, [0])]
return torch.add(x, s[torch.remainder(torch.size(x, 0), 3)])
"""

    def reference(x: Array) -> Any:
        return x + [0, 1, x.sum(0)][len(x) % 3]

    check(code, reference, tmp_path)


def test_a_view_from_before_a_loop_follows_its_changes(tmp_path: Path) -> None:
    code = """
y = torch.zeros([4, 3])
first, turned = torch.select(y, 0, 0), torch.t(y)
for i in range(torch.size(x, 0)):
  row = torch.select(x, 0, i)
  z = torch.add(torch.mul(first, 0.5), row)
  _0 = torch.add_(torch.select(y, 0, torch.remainder(i, 2)), z)
_1 = torch.mul_(torch.select(turned, 0, 1), 3)
shown = [torch.mul(first, 2), torch.flatten(torch.add(turned, 1)), torch.flatten(y)]
return torch.cat(shown)
"""

    def reference(x: Array) -> Any:
        y = np.zeros((4, 3), np.float32)
        for i, row in enumerate(x):
            y[i % 2] += y[0] * np.float32(0.5) + row
        y[:, 1] *= 3
        return np.concatenate([y[0] * 2, (y.T + 1).ravel(), y.ravel()])

    check(code, reference, tmp_path)


ROUNDS = """
y, outs = torch.zeros([3]), annotate(List[Tensor], [])
p, s = y, [torch.zeros([3]), torch.ones([3])]
v = torch.reshape(torch.t(torch.expand(y, [1, 3])), [-1])
for i in range(torch.size(x, 0)):
  row = torch.select(x, 0, i)
  {}
return torch.add(y, torch.sum(torch.stack(s)))
"""


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            "_0 = torch.append(outs, torch.add_(y, row))",
            "a loop stores a tensor that later iterations change in place",
        ),
        ("_0 = torch.add_(p, row)\n  p = row", "a loop that changes 'p' in place"),
        (
            "_0 = torch.add_(s[0], row)\n  _1 = torch._set_item(s, 0, row)",
            "a loop changes a list item in place and replaces it",
        ),
        (
            "z = torch.add(v, row)\n  _0 = torch.add_(y, z)",
            "a tensor is read after torch.add_ changed a view of it",
        ),
        (
            "_0 = torch.append(outs, row)\n  y = torch.sum(torch.stack(outs), [0])",
            "torch.stack of a list within the loop that it grows in",
        ),
        (
            "_0 = torch.append(outs, outs[torch.sub(i, 1)])",
            "an item of a list is read within the loop that appends to it",
        ),
        ("_0 = torch.pop(s)", "a list changes in a branch or loop"),
        (
            "_0 = torch.add_(s[torch.remainder(i, 2)], row)",
            "a change in place of an item that is known only at run time",
        ),
        (
            "_0 = torch._set_item(s, torch.remainder(i, 2), row)",
            "the index of an assigned list item is known only at run time",
        ),
    ],
)
def test_what_no_loop_can_say_is_refused(
    step: str, message: str, tmp_path: Path
) -> None:
    path = net(ROUNDS.format(step)).saved(tmp_path)
    with pytest.raises(UnsupportedModel, match=rf"code/__torch__.py, line .*{message}"):
        read(path, {"x": ("batch", 3)})
