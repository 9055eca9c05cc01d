"""Classes that compute nothing, replaced by their members."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.single_members import without_single_members


def text(
    name: str,
    *fields: str,
    body: str = "",
    constructor: str = "",
    record_names: Mapping[str, str] | None = None,
) -> ClassText:
    """Return a class with ``fields``, and a method of one line."""
    lines = [f"        {line}" for line in body.split("\n")] if body else []
    return ClassText(
        name,
        "",
        [f"self.{field}" for field in fields],
        signature=", x: Tensor",
        body=lines,
        constructor=constructor,
        record_names=dict(record_names or {}),
    )


def executed(texts: list[ClassText]) -> Any:
    """Return an instance of the first class."""
    scope: dict[str, Any] = {"nn": nn, "ops": ops}
    for one in reversed(texts):
        fields = "\n".join(f"        {line}" for line in one.fields)
        source = (
            f"class {one.name}({one.base}):\n"
            f"    record_names = {one.record_names}\n"
            f"    def __init__(self{one.constructor}):\n{fields}\n"
        )
        if one.body:
            source += "    def __call__(self, x):\n" + "\n".join(one.body) + "\n"
        exec(re.sub(r": [\w.]+ \| [\w.]+ =", " =", source), scope)  # noqa: S102
    return scope[texts[0].name]()


CONV = "nn.Conv2d(3, 3, kernel_size=1)"
DOWN = text("Down", f"conv = {CONV}", body="return self.conv(x)")
SIZED = text(
    "Down",
    "conv = nn.Conv2d(a, b, kernel_size=1)",
    body="return self.conv(x)",
    constructor=", a: int, b: int",
)
HOLDER = text("Holder", f"first = {CONV}", f"second = {CONV}")
TABLE = text("Table", "weight = nn.parameter(3, 1, 1)", "shift = nn.parameter(1)")
PAIR = text("Pair", "gain = nn.parameter(3, 1, 1)", "offset = nn.parameter(1)")
BIAS = text("Bias", "bias = nn.parameter(3, 1, 1)")

REPLACED = {
    "field": [text("Net", "down = Down()", body="return self.down(x)"), DOWN],
    "list": [
        text(
            "Net",
            "downs = nn.ModuleList([Down(3, 4), Down(4, 3)])",
            body="for down in self.downs:\n    x = down(x)\nreturn x",
        ),
        SIZED,
    ],
    "generated": [
        text(
            "Net",
            "downs = nn.Sequential(*(Down(3, 3) for _ in range(3)))",
            body="return self.downs(x)",
        ),
        SIZED,
    ],
    "read through": [
        text(
            "Net",
            "downs = nn.ModuleList([Down(), Down()])",
            body="return x + self.downs[1].conv.weight.mean() + self.downs[0](x)",
        ),
        DOWN,
    ],
    "nested lists": [
        text(
            "Net",
            "stages = nn.ModuleList([nn.ModuleList([Inner()])])",
            body="return self.stages[0][0].down.conv.weight.mean() + x",
        ),
        text(
            "Inner", "down = Down()", f"conv = {CONV}", body="return self.conv(x) * 2"
        ),
        DOWN,
    ],
    "numbered": [
        text(
            "Net",
            "downs = nn.ModuleList([Down(), Down()])",
            body="return self.downs[1](x)",
            record_names={"downs": "down{1}"},
        ),
        DOWN,
    ],
    "nested": [
        text("Net", "stages = nn.Sequential(Stage())", body="return self.stages(x)"),
        text(
            "Stage", "layers = nn.ModuleList([Down()])", body="return self.layers[0](x)"
        ),
        DOWN,
    ],
    "holder": [
        text(
            "Net",
            "inner = Holder()",
            body="return self.inner.second(self.inner.first(x))",
        ),
        HOLDER,
    ],
    "arrays": [
        text(
            "Net",
            "scale = Table()",
            body="return x * self.scale.weight + self.scale.shift",
        ),
        TABLE,
    ],
    "two pairs": [
        text(
            "Net",
            "a = Pair()",
            "b = Pair()",
            body="x = x * self.a.gain + self.a.offset\n"
            "return x * self.b.gain + self.b.offset",
        ),
        PAIR,
    ],
    "two biases": [
        text(
            "Net",
            "a = Bias()",
            "b = Bias()",
            body="return x + self.a.bias * self.b.bias",
        ),
        BIAS,
    ],
    "other owner": [
        text(
            "Net",
            "block = Block()",
            body="block = self.block\nreturn block(block.inner.first(x))",
        ),
        text(
            "Block",
            "inner = Holder()",
            f"conv = {CONV}",
            body="x = ops.relu(x)\nreturn self.inner.second(self.conv(x))",
        ),
        HOLDER,
    ],
}


@pytest.mark.parametrize("name", REPLACED)
def test_keys_and_values_stay(name: str) -> None:
    texts = REPLACED[name]
    before = executed(texts)
    kept = without_single_members(texts)
    assert len(kept) == 1 + (name in ("nested lists", "other owner"))
    after = executed(kept)
    assert set(after.state_dict()) == set(before.state_dict())
    rng = np.random.default_rng(3)
    state = {
        key: rng.normal(size=one.shape).astype("float32")
        for key, one in before.state_dict().items()
    }
    before.load_state_dict(state)
    after.load_state_dict(state)
    x = burn.tensor(rng.normal(size=(2, 3, 4, 5)).astype("float32"))
    assert before(x).numpy().tolist() == after(x).numpy().tolist()


KEPT = {
    "root": [text("Net", f"conv = {CONV}", body="return self.conv(x)")],
    "swapped": [
        text("Net", "down = Down()", body="return self.down(x)"),
        text("Down", f"conv = {CONV}", body="return self.conv(x) + x"),
    ],
    "passed to a function": [
        text("Net", "inner = Holder()", body="return call(self.inner, x)"),
        HOLDER,
    ],
    "one of two types": [
        text(
            "Net",
            f"downs = nn.ModuleList([Down(), {CONV}])",
            body="for down in self.downs:\n    x = down(x)\nreturn x",
        ),
        DOWN,
    ],
    "read of an unknown type": [
        text("Net", "inner = Down()", body="return pick(x).inner.conv(x)"),
        DOWN,
    ],
    "holders in a list": [
        text(
            "Net",
            "inner = nn.ModuleList([Holder()])",
            body="return self.inner[0].first(x)",
        ),
        HOLDER,
    ],
    "repeated sequence": [
        text("Net", "a = Stage()", "b = Stage()", body="return self.a(self.b(x))"),
        text(
            "Stage",
            f"layers = nn.Sequential({CONV}, nn.Identity())",
            body="return self.layers(x)",
        ),
    ],
    "other member": [
        text("Net", "inner = Stage()", body="return self.inner.layers[1](x)"),
        text("Stage", f"layers = nn.ModuleList([{CONV}])"),
    ],
}


@pytest.mark.parametrize("name", KEPT)
def test_classes_that_do_more_stay(name: str) -> None:
    assert without_single_members(KEPT[name]) == KEPT[name]


def test_fields_of_one_name_are_told_by_their_class() -> None:
    texts = [
        text("Net", "a = One()", "b = Two()", body="return self.a(self.b(x))"),
        text("One", "q = Bias()", f"c = {CONV}", body="return self.c(x + self.q.bias)"),
        text("Two", f"q = {CONV}", body="return self.q(x) + self.q.bias.mean()"),
        BIAS,
    ]
    names = [one.name for one in without_single_members(texts)]
    assert names == ["Net", "One", "Two"]


def test_unread_matrix_and_bias_are_a_linear_layer() -> None:
    pooler = text("Pool", "weight = nn.parameter(3, 5)", "bias = nn.parameter(3)")
    net = text("Net", f"conv = {CONV}", "pool = Pool()", body="return self.conv(x)")
    (kept,) = without_single_members([net, pooler])
    assert kept.fields[1] == "self.pool = nn.Linear(5, 3)"
    before, after = executed([net, pooler]), executed([kept])
    shapes = {key: one.shape for key, one in before.state_dict().items()}
    assert {key: one.shape for key, one in after.state_dict().items()} == shapes
