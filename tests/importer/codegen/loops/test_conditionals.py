"""Nested conditional expressions, in every operand position."""

import itertools
import random
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from burn_import.codegen.printing.print_if import _collapse
from tests.importer.looped import check, normal

CONDITIONS = ("a", "b", "c")


def every_case() -> list[dict[str, Any]]:
    """Return inputs with all values of the conditions."""
    return [
        {
            **dict(zip(CONDITIONS, map(np.array, flags), strict=True)),
            "x": normal(2),
            "y": normal(2),
        }
        for flags in itertools.product((False, True), repeat=3)
    ]


def tree(rng: random.Random, depth: int) -> str:
    """Return the nodes of a branch that ends in ``If``, or in one short node."""
    name = f"v{rng.randrange(10**9)}"
    if depth == 0:
        node = rng.choice(["Identity (x)", "Identity (y)", "Neg (x)", "Exp (y)"])
        return f"{name} = {node} => {name}"
    parts = []
    for branch in ("then_branch", "else_branch"):
        inner = tree(rng, depth - 1 if rng.random() < 0.8 else 0)
        nodes, _, result = inner.rpartition(" => ")
        body = f"g{name} () => (float[2] {result}) {{ {nodes} }}"
        parts.append(f"{branch} = {body}")
    return f"{name} = If ({rng.choice(CONDITIONS)}) <{', '.join(parts)}> => {name}"


@pytest.mark.parametrize("seed", range(12))
def test_trees(tmp_path: Path, seed: int) -> None:
    nodes, _, result = tree(random.Random(seed), 3).rpartition(" => ")
    text = f"""agraph (bool a, bool b, bool c, float[2] x, float[2] y) => (float[2] z)
        {{ {nodes}  z = Identity ({result}) }}"""
    check(tmp_path, text, *every_case())


def test_a_flag_chosen_by_a_flag_chosen_by_a_flag(tmp_path: Path) -> None:
    text = """agraph (bool a, bool b, bool c, float[2] x, float[2] y) => (float[2] z)
    { d = If (a) <then_branch = t () => (bool e) {
                      e = If (b) <then_branch = u () => (bool f) { f = Identity (c) },
                                  else_branch = v () => (bool g) { g = Not (c) }> },
                  else_branch = w () => (bool h) { h = Identity (b) }>
      z = If (d) <then_branch = k () => (float[2] i) { i = Neg (x) },
                  else_branch = l () => (float[2] j) { j = Neg (y) }> }"""
    check(tmp_path, text, *every_case())


class Lines:
    """The lines of a writer."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def line(self, text: str, indent: int) -> None:
        self.lines.append(4 * indent * " " + text)


@pytest.mark.parametrize(
    "condition, then, orelse, expected",
    [
        ("c", "y = a", "y = b", "y = a if c else b"),
        ("c", "y = b", "y = a if d else b", "y = b if c else a if d else b"),
        ("c", "y = a if d else b", "y = b", None),
        ("c if d else e", "y = a", "y = b", None),
        ("c", "pass", "y = a", None),
        ("c", "y = a", "pass", None),
        ("c", "pass", "pass", None),
        ("c", "y = a", "z = b", None),
        ("c:  # bool[]", "y = a", "y = b", None),
    ],
)
def test_branches_in_one_line(
    condition: str, then: str, orelse: str, expected: str | None
) -> None:
    lines = [f"if {condition}:", f"    {then}", "else:", f"    {orelse}"]
    writer = Lines(*lines)
    _collapse(cast(Any, writer), 0, 0)
    assert writer.lines == (lines if expected is None else [expected])
