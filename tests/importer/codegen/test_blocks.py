"""Graphs without names: repeated blocks become one class in a list."""

from pathlib import Path

import pytest

from tests.importer.looped import check, normal
from tests.modules import Array

RESIDUAL = """h{i} = Gemm (v{i}, w{i}, b{i})
r{i} = Relu (h{i})
g{i} = Gemm (r{i}, u{i}, c{i})
v{j} = Add (g{i}, v{i})
"""


def weights(*blocks: int, wide: int = 6) -> dict[str, Array]:
    """Return the weights of two layers per block index."""
    results: dict[str, Array] = {}
    for i in blocks:
        results |= {f"w{i}": normal(4, wide, seed=i), f"b{i}": normal(wide, seed=i)}
        results |= {f"u{i}": normal(wide, 4, seed=i), f"c{i}": normal(4, seed=i)}
    return results


def imported(folder: Path, lines: str, arrays: dict[str, Array]) -> str:
    """Return the source of a model, checked against onnxruntime at two sizes."""
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4)} for n in (1, 3)]
    return check(folder, text, *feeds, weights=arrays)


@pytest.mark.parametrize("count", [2, 5])
def test_equal_blocks_are_one_class(tmp_path: Path, count: int) -> None:
    lines = "v0 = Tanh (x)\n"
    lines += "".join(RESIDUAL.format(i=i, j=i + 1) for i in range(count))
    lines += f"y = Sigmoid (v{count})\n"
    source = imported(tmp_path, lines, weights(*range(count)))
    assert "self.blocks = nn.ModuleList(Block() for _ in range(layers))" in source
    assert f"def __init__(self, layers: int = {count}) -> None:" in source
    assert "for block in self.blocks:\n            x = block(x)\n" in source
    assert source.count("class Block(") == 1
    assert "self.linear = nn.Linear(4, 6)\n" in source
    assert "return self.linear_2(ops.relu(self.linear(x))) + x" in source


def test_what_all_blocks_read_is_computed_before(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    for i in range(3):
        lines += "s = Sigmoid (x)\nm = Neg (s)\n" if not i else ""
        lines += f"h{i} = Gemm (v{i}, w{i}, b{i})\nr{i} = Relu (h{i})\n"
        lines += f"g{i} = Gemm (r{i}, u{i}, c{i})\na{i} = Mul (g{i}, m)\n"
        lines += f"v{i + 1} = Add (a{i}, v{i})\n"
    source = imported(tmp_path, lines + "y = Tanh (v3)\n", weights(0, 1, 2))
    assert "for block in self.blocks:\n" in source
    assert source.count("ops.sigmoid") == 1


def test_blocks_of_two_widths_are_two_lists(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    lines += "".join(RESIDUAL.format(i=i, j=i + 1) for i in range(5))
    arrays = weights(0, 1) | weights(2, 3, 4, wide=7)
    source = imported(tmp_path, lines + "y = Sigmoid (v5)\n", arrays)
    assert "nn.ModuleList(Block(6) for _ in range(layers))" in source
    assert "nn.ModuleList(Block(7) for _ in range(layers_2))" in source
    assert "def __init__(self, layers: int = 2, layers_2: int = 3) -> None:" in source


def test_layers_beside_blocks_are_numbered_without_them(tmp_path: Path) -> None:
    lines = "v0 = Gemm (x, w7, b7)\n"
    lines += "".join(RESIDUAL.format(i=i, j=i + 1) for i in range(2))
    arrays = weights(0, 1) | {"w7": normal(4, 4), "b7": normal(4)}
    arrays |= {"w8": normal(4, 4), "b8": normal(4)}
    source = imported(tmp_path, lines + "y = Gemm (v2, w8, b8)\n", arrays)
    assert "return self.linear_2(x)" in source


def test_layers_alone_are_no_blocks(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    arrays: dict[str, Array] = {}
    for i in range(3):
        lines += f"h{i} = Gemm (v{i}, w{i}, b{i})\nv{i + 1} = Relu (h{i})\n"
        arrays |= {f"w{i}": normal(4, 4, seed=i), f"b{i}": normal(4, seed=i)}
    assert "blocks" not in imported(tmp_path, lines + "y = Tanh (v3)\n", arrays)


def test_a_block_used_again_is_no_other_block(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    for i in range(3):
        lines += f"h{i} = Gemm (v{i}, w0, b0)\nr{i} = Relu (h{i})\n"
        lines += f"g{i} = Gemm (r{i}, u0, c0)\nv{i + 1} = Add (g{i}, v{i})\n"
    assert "blocks" not in imported(tmp_path, lines + "y = Tanh (v3)\n", weights(0))


def test_blocks_that_read_across_others_are_none(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    for i in range(3):
        skip = f"v{2 - i}" if i > 1 else f"r{i}"
        lines += f"h{i} = Gemm (v{i}, w{i}, b{i})\nr{i} = Relu (h{i})\n"
        lines += f"g{i} = Gemm (r{i}, u{i}, c{i})\n"
        step = f"s{i} = Neg ({skip})\n" if i > 1 else f"s{i} = Exp (v{i})\n"
        lines += f"{step}v{i + 1} = Sub (g{i}, s{i})\n"
    source = imported(tmp_path, lines + "y = Tanh (v3)\n", weights(0, 1, 2))
    assert "range(3)" not in source


def test_another_constant_is_another_block(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    for i in range(2):
        lines += f"h{i} = Gemm (v{i}, w{i}, b{i})\n"
        lines += f"k{i} = Constant <value_float = {i + 2}.0> ()\n"
        lines += f"r{i} = Mul (h{i}, k{i})\ng{i} = Gemm (r{i}, u{i}, c{i})\n"
        lines += f"v{i + 1} = Add (g{i}, v{i})\n"
    source = imported(tmp_path, lines + "y = Tanh (v2)\n", weights(0, 1))
    assert "blocks" not in source


def test_names_of_weights_come_first(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    lines += "".join(RESIDUAL.format(i=i, j=i + 1) for i in range(2))
    lines = lines.replace("w0, b0", "stem__weight, stem__bias")
    arrays = weights(0, 1)
    arrays |= {"stem.weight": arrays.pop("w0"), "stem.bias": arrays.pop("b0")}
    source = imported(tmp_path, lines + "y = Sigmoid (v2)\n", arrays)
    assert "self.stem = nn.Linear" in source and "blocks" not in source


def test_many_blocks_are_one_loop(tmp_path: Path) -> None:
    count = 120
    lines = "v0 = Tanh (x)\n"
    lines += "".join(RESIDUAL.format(i=i, j=i + 1) for i in range(count))
    source = imported(
        tmp_path, lines + f"y = Tanh (v{count})\n", weights(*range(count))
    )
    assert f"layers: int = {count}" in source
    assert source.count("class ") == 2
