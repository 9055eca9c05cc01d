"""Reshapes and broadcasts of the source that fit other sizes of inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.open_sizes import with_open_sizes
from tests.importer.looped import check, normal


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("x.reshape(batch, 512, 256)", "x.reshape(batch, -1, 256)"),
        ("x.reshape(batch, seq, 4, 3, 8)", "x.reshape(batch, seq, -1, 3, 8)"),
        ("x.reshape(1, 256, 16)", "x.reshape(1, -1, 16)"),
        ("x.reshape(batch, seq, 4, 8)", None),
        ("x.reshape(batch, -1, 4, 8)", None),
        ("x.reshape(batch, 1, 32)", None),
        ("x.reshape(*size, 4, 8)", None),
        ("x.reshape(batch, 0, 4, 8)", None),
        ("ops.full(batch, 4, 8)", None),
    ],
)
def test_first_of_several_numbers_is_open(call: str, expected: str | None) -> None:
    lines = ["        if x:", f"            y = {call}  # [2, 3]", "        return y"]
    before = ClassText("Net", "", [], body=lines)
    (after,) = with_open_sizes([before])
    assert after.body[1] == f"            y = {expected or call}  # [2, 3]"
    assert (after.body[0], after.body[2]) == (lines[0], lines[2])


@pytest.mark.parametrize("batch", [2, 1, 0])
def test_target_keeps_extents_of_the_operand(tmp_path: Path, batch: int) -> None:
    text = """agraph (float[batch, 6, 1, 8] x) => (float[batch, 6, 5, 8] y) {
        size = Shape <start = 0, end = 1> (x)
        rest = Constant <value_ints = [6, 5, 8]> ()
        shape = Concat <axis = 0> (size, rest)
        wide = Expand (x, shape)
        y = Tanh (wide)
    }"""
    source = check(tmp_path, text, {"x": normal(batch, 6, 1, 8)})
    assert "ops.tanh(x.expand(-1, -1, 5, -1))" in source


def test_no_extent_is_kept_if_none_is_new(tmp_path: Path) -> None:
    text = """agraph (float[3, 4] x) => (float[n, m] y) {
        shape = Constant <value_ints = [3, 1]> ()
        t = Tanh (x)
        y = Expand (t, shape)
    }"""
    source = check(tmp_path, text, {"x": normal(3, 4)})
    assert "-1" not in source.partition("class Net")[2]


def test_reshape_with_an_open_size_of_an_empty_batch(tmp_path: Path) -> None:
    text = """agraph (float[batch, 6, 8] x) => (float[batch, 12, 4] y) {
        shape = Constant <value_ints = [0, 12, 4]> ()
        t = Tanh (x)
        y = Reshape (t, shape)
    }"""
    feeds = [{"x": normal(batch, 6, 8)} for batch in (2, 1, 0)]
    source = check(tmp_path, text, *feeds)
    assert ".reshape(batch, -1, 4)" in source


def test_a_body_may_begin_with_an_empty_line() -> None:
    lines = [
        "",
        "    def inner(x: Tensor) -> Tensor:",
        "        return x.reshape(n, 4, 6)",
    ]
    (after,) = with_open_sizes([ClassText("Net", "", [], body=lines)])
    assert after.body == [*lines[:2], "        return x.reshape(n, -1, 6)"]


@pytest.mark.parametrize("batch", [3, 1, 0])
def test_reshape_that_inserts_an_axis_has_no_sizes(tmp_path: Path, batch: int) -> None:
    text = """agraph (float[batch, 6] x) => (float[batch, 6, 1] y) {
        shape = Constant <value_ints = [-1, 6, 1]> ()
        t = Tanh (x)
        y = Reshape (t, shape)
    }"""
    source = check(tmp_path, text, {"x": normal(batch, 6)})
    assert "return ops.tanh(x).unsqueeze(2)" in source
