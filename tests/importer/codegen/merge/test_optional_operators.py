"""Blocks with an optional final operator are one class with a flag."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.importer.looped import check, normal
from tests.modules import Array


def blocks(folder: Path, ends: Sequence[str]) -> str:
    """Return the source of a model of blocks that end in these calls.

    In a call ``{x}`` is the input of the block, and ``{h}`` the result of its
    layer.
    """
    weights: dict[str, Array] = {}
    lines = "v0 = Tanh (x)\n"
    for i, end in enumerate(ends):
        path = f"blocks.{i}"
        weights[f"{path}.fc.weight"] = normal(4, 4, seed=i) / 2
        weights[f"{path}.fc.bias"] = normal(4, seed=i)
        name = f"blocks__{i}__fc"
        lines += f'["/{path}/Gemm"] h{i} = Gemm (v{i}, {name}__weight, {name}__bias)\n'
        lines += f'["/{path}/Abs"] a{i} = Abs (h{i})\n'
        call = end.format(x=f"v{i}", h=f"a{i}")
        lines += f'["/{path}/End"] v{i + 1} = {call}\n'
    lines += f'["/last/Tanh"] y = Tanh (v{len(ends)})\n'
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    return check(folder, text, *({"x": normal(n, 4)} for n in (1, 3)), weights=weights)


NOTHING = "Identity ({h})"


@pytest.mark.parametrize(
    ("end", "flag", "line"),
    [
        ("Relu ({h})", "activation", "return ops.relu(x) if self.activation else x"),
        ("Add ({x}, {h})", "residual", "return x + y if self.residual else y"),
        ("Add ({h}, {x})", "residual", "return y + x if self.residual else y"),
    ],
)
def test_an_operator_that_some_have(
    end: str, flag: str, line: str, tmp_path: Path
) -> None:
    source = blocks(tmp_path, [end, NOTHING, end])
    assert source.count("(nn.Module)") == 2
    assert f"def __init__(self, {flag}: bool) -> None:" in source
    assert f"Block({flag}=True), Block({flag}=False), Block({flag}=True)" in source
    assert line in source


@pytest.mark.parametrize(
    "ends",
    [
        ["Relu ({h})", "Sigmoid ({h})"],
        ["Softmax ({h})", NOTHING],
        ["LeakyRelu <alpha = 0.1> ({h})", "LeakyRelu <alpha = 0.2> ({h})", NOTHING],
        ["Mul ({x}, {h})", NOTHING],
    ],
)
def test_other_ends_are_other_classes(ends: list[str], tmp_path: Path) -> None:
    assert blocks(tmp_path, ends).count("(nn.Module)") > 2
