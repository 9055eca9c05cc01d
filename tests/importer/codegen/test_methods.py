"""Long bodies are split where few values are live."""

import re
from pathlib import Path
from random import Random

import pytest

from burn_import.codegen.module.methods import LONG, NARROW
from tests.importer.looped import check, normal

SIZES = (1, 3)
#: Operators that keep rounding errors small.
STABLE = ("Max", "Min")


def imported(folder: Path, lines: str) -> str:
    """Return the source of a model, checked against onnxruntime at two sizes."""
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    return check(folder, text, *({"x": normal(n, 4)} for n in SIZES))


def chain(length: int) -> str:
    """Return the lines of a value that is read twice by each next one.

    The operators follow no pattern: a loop would have few lines.
    """
    choice = Random(0).choice
    lines = "v0 = Tanh (x)\n"
    for i in range(length):
        name = choice(("Sin", "Tanh", "Cos"))
        lines += f"s{i} = {name} (v{i})\nv{i + 1} = {choice(STABLE)} (v{i}, s{i})\n"
    return lines + f"y = Neg (v{length})\n"


def longest(source: str) -> int:
    """Return the number of lines of the longest function."""
    starts = [match.start() for match in re.finditer(r"^    def ", source, re.M)]
    bounds = [*starts, len(source)]
    pieces = zip(bounds, bounds[1:], strict=False)
    return max(source[a:b].count("\n") for a, b in pieces)


def test_a_long_body_is_cut_into_methods(tmp_path: Path) -> None:
    source = imported(tmp_path, chain(2 * LONG))
    assert source.count("    def part") == 4
    assert "= self.part3(self.part2(self.part(x)))\n" in source
    assert "return self.part4(" in source
    assert longest(source) < LONG


def test_a_short_body_stays(tmp_path: Path) -> None:
    assert "def part" not in imported(tmp_path, chain(LONG // 2))


def test_extents_are_read_anew_in_each_piece(tmp_path: Path) -> None:
    lines = chain(2 * LONG).replace("y = Neg", "z = Neg") + "shape = Shape (x)\n"
    lines += "zero = Constant <value_int = 0> ()\none = Constant <value_int = 1> ()\n"
    lines += "n = Gather (shape, zero)\nplaces = Range (zero, n, one)\n"
    lines += "numbers = Cast <to = 1> (places)\naxes = Constant <value_ints = [1]> ()\n"
    lines += "column = Unsqueeze (numbers, axes)\ny = Add (z, column)\n"
    source = imported(tmp_path, lines)
    last = source[source.rindex("    def part") :]
    assert "        n = " in last
    assert "ops.arange(n)" in last


@pytest.mark.parametrize("wide", [NARROW, NARROW + 2])
def test_a_body_is_not_cut_where_much_flows(tmp_path: Path, wide: int) -> None:
    lines = "".join(f"v{k}_0 = Elu <alpha = {k + 1}.5> (x)\n" for k in range(wide))
    steps = 2 * LONG // wide
    choice = Random(0).choice
    for i in range(steps):
        for k in range(wide):
            lines += f"s{k}_{i} = Sin (v{k}_{i})\n"
            other = f"v{(k + 1) % wide}_{i}"
            lines += f"v{k}_{i + 1} = {choice(STABLE)} ({other}, s{k}_{i})\n"
    ends = ", ".join(f"v{k}_{steps}" for k in range(wide))
    source = imported(tmp_path, lines + f"y = Sum ({ends})\n")
    assert ("def part" in source) == (wide <= NARROW)


def test_extents_of_a_value_that_a_piece_does_not_read(tmp_path: Path) -> None:
    """The method that computes a value returns it for its dimension."""
    lines = "zero = Constant <value_int = 0> ()\none = Constant <value_int = 1> ()\n"
    lines += "axes = Constant <value_ints = [0]> ()\nsigns = Sign (x)\n"
    lines += "places = NonZero (signs)\nshape = Shape (places)\n"
    lines += "m = Gather (shape, one)\nflat = ReduceMax (x, axes)\n"
    lines += chain(2 * LONG).replace("Tanh (x)", "Tanh (flat)").replace("y =", "z =")
    lines += "counts = Range (zero, m, one)\nnumbers = Cast <to = 1> (counts)\n"
    lines += "total = ReduceSum <keepdims = 0> (numbers)\nw = Add (z, total)\n"
    lines += "y = Add (x, w)\n"
    source = imported(tmp_path, lines)
    assert source.count("    def part") > 2
