"""Blocks that move their windows, and sizes that blocks infer."""

from pathlib import Path

import pytest

from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.init_fields import Column
from tests.importer.codegen.merge.test_families import Layers, gemm, linear
from tests.importer.codegen.merge.test_optional_blocks import NUMBERS
from tests.importer.looped import check, normal

WIDTH = 8


def moved(block: int, target: str, source: str) -> str:
    """Return the lines that move a row of four by two, in a block's scope."""
    scope = f'["/blocks.{block}/{target}'
    return (
        f'{scope}/Slice"] {target}s = Slice ({source}, two, four, one)\n'
        f'{scope}/Slice_1"] {target}t = Slice ({source}, zero, two, one)\n'
        f'{scope}/Concat"] {target} = Concat <axis = 1> ({target}s, {target}t)\n'
    )


def shifting(folder: Path, is_first: bool) -> str:
    """Return the source of two blocks; the second moves its result, or both ends."""
    lines, layers = NUMBERS + "v0 = Tanh (x)\n", Layers()
    for i in range(2):
        layers |= {f"blocks.{i}.fc1": (4, 4), f"blocks.{i}.fc2": (4, 4)}
        start = "start" if i and is_first else f"v{i}"
        lines += moved(i, start, f"v{i}") if start == "start" else ""
        lines += gemm(f"h{i}", f"blocks.{i}.fc1", start)
        lines += f'["/blocks.{i}/Relu"] r{i} = Relu (h{i})\n'
        lines += gemm(f"v{i + 1}" if not i else "last", f"blocks.{i}.fc2", f"r{i}")
    lines += moved(1, "v2", "last") + "z = Tanh (x)\ny = Sub (v2, z)\n"
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4, seed=n)} for n in (1, 3)]
    return check(folder, text, *feeds, weights=linear(layers))


def test_what_is_moved_is_moved_back(tmp_path: Path) -> None:
    source = shifting(tmp_path, is_first=True)
    assert source.count("(nn.Module)") == 2
    assert source.count("if self.shift else") == 2


def test_a_last_operator_alone_is_another_class(tmp_path: Path) -> None:
    assert shifting(tmp_path, is_first=False).count("(nn.Module)") == 3


def reshaping(folder: Path, lengths: tuple[int, int]) -> str:
    """Return the source of two blocks that split rows of eight into two heads.

    The second gets twice as many rows; ``lengths`` are those of the second axis.
    """
    lines, layers = "v0 = Tanh (x)\n", Layers()
    for i, (rows, length) in enumerate(zip((2, 4), lengths, strict=True)):
        layers[f"blocks.{i}.fc"] = (WIDTH, WIDTH)
        key = f"blocks__{i}__fc"
        lines += (
            f'["/blocks.{i}/fc/MatMul"] h{i} = MatMul (v{i}, {key}__weight)\n'
            f'["/blocks.{i}/fc/Add"] k{i} = Add (h{i}, {key}__bias)\n'
            f"a{i} = Constant <value_ints = [{rows}, {length}, 2, 4]> ()\n"
            f'["/blocks.{i}/Reshape"] p{i} = Reshape (k{i}, a{i})\n'
            f'["/blocks.{i}/Softmax"] q{i} = Softmax <axis = 3> (p{i})\n'
            f"b{i} = Constant <value_ints = [{rows}, {length}, 8]> ()\n"
            f'["/blocks.{i}/Reshape_1"] r{i} = Reshape (q{i}, b{i})\n'
        )
        if not i:
            axis = 0 if lengths[0] == lengths[1] else 1
            twice = "r0, r0" if axis == 0 else "w, w"
            lines += (
                "" if axis == 0 else '["/Concat_1"] w = Concat <axis = 0> (r0, r0)\n'
            )
            lines += f'["/Concat"] v1 = Concat <axis = {axis}> ({twice})\n'
    lines += '["/Neg"] y = Neg (r1)\n'
    shape = f"4, {lengths[1]}, 8"
    text = f"agraph (float[2, 3, 8] x) => (float[{shape}] y) {{\n{lines}}}"
    return check(folder, text, {"x": normal(2, 3, 8)}, weights=linear(layers))


@pytest.mark.parametrize("lengths", [(3, 3), (3, 6)])
def test_rows_are_inferred_where_only_they_differ(
    tmp_path: Path, lengths: tuple[int, int]
) -> None:
    source = reshaping(tmp_path, lengths)
    assert source.count("(nn.Module)") == 2
    assert ("-1, 3, 2, 4" in source) == (lengths[0] == lengths[1])


def test_sizes_are_windows_times_their_size() -> None:
    columns = [
        Column((8, 4), "windows", ""),
        Column((56, 28), "size", ""),
        Column((8, 5), "size", ""),
    ]
    result = constructor(columns, [])
    assert result.texts[:2] == ["windows", "7 * windows"]
    assert result.signature == ", windows: int, size: int"


def test_slices_start_at_differences_of_sizes() -> None:
    whole, rest = Column((32, 16), "size", ""), Column((30, 15), "size", "")
    start = Column((2, 1), "width", "", derived=True)
    assert constructor([whole, rest, start], []).texts[2] == "size - size2"
    of_one = constructor(
        [Column((31, 30), "size", ""), Column((1, 2), "width", "", True)], []
    )
    assert of_one.texts == ["size", "32 - size"]
    with pytest.raises(DifferError):
        constructor([whole, Column((3, 1), "width", "", derived=True)], [])


def test_heads_are_heads_in_layers_too() -> None:
    columns = [
        Column((24, 48), "in_features", "qkv"),
        Column((2, 4), "out_features", "position_mlp"),
        Column((2, 4), "heads", ""),
    ]
    assert constructor(columns, []).signature == ", in_features: int, heads: int"


def halving(folder: Path, widths: tuple[int, int], ends: tuple[int, int]) -> str:
    """Return the source of blocks that add their rows from 0 up to ``ends``."""
    lines, layers = "zero = Constant <value_ints = [0]> ()\n", Layers()
    lines += "one = Constant <value_ints = [1]> ()\nv0 = Tanh (x)\n"
    for i, (width, end) in enumerate(zip(widths, ends, strict=True)):
        layers[f"blocks.{i}.fc"] = (width, 2 * width)
        lines += f"end{i} = Constant <value_ints = [{end}]> ()\n"
        lines += gemm(f"h{i}", f"blocks.{i}.fc", f"v{i}")
        lines += f'["/blocks.{i}/Slice"] s{i} = Slice (h{i}, zero, end{i}, one)\n'
        lines += f'["/blocks.{i}/Sigmoid"] v{i + 1} = Sigmoid (s{i})\n'
    lines += '["/Neg"] y = Neg (v2)\n'
    shape = f"n, {ends[1]}"
    text = f"agraph (float[n, {widths[0]}] x) => (float[{shape}] y) {{\n{lines}}}"
    return check(folder, text, {"x": normal(3, widths[0])}, weights=linear(layers))


def test_bounds_of_slices_follow_from_widths(tmp_path: Path) -> None:
    source = halving(tmp_path, (4, 2), (2, 1))
    assert source.count("(nn.Module)") == 2
    assert "[:, : self.width]" in source


def test_bounds_that_follow_from_nothing_are_another_class(tmp_path: Path) -> None:
    assert halving(tmp_path, (4, 3), (3, 2)).count("(nn.Module)") == 3


def test_what_one_block_infers_all_do(tmp_path: Path) -> None:
    """The first block joins two rows of three, the second has two rows of one."""
    lines, layers = "v0 = Tanh (x)\n", Layers()
    between = (
        "split = Constant <value_ints = [2, 3, 8]> ()\n"
        "axis = Constant <value_ints = [1]> ()\n"
        '["/Reshape"] u = Reshape (q0, split)\n'
        '["/ReduceMax"] v1 = ReduceMax (u, axis)\n'
    )
    for i, length in enumerate((3, 1)):
        layers[f"blocks.{i}.fc"] = (8, 8)
        key = f"blocks__{i}__fc"
        lines += (
            f'["/blocks.{i}/fc/MatMul"] h{i} = MatMul (v{i}, {key}__weight)\n'
            f'["/blocks.{i}/fc/Add"] k{i} = Add (h{i}, {key}__bias)\n'
            f"a{i} = Constant <value_ints = [{2 * length}, 8]> ()\n"
            f'["/blocks.{i}/Reshape"] p{i} = Reshape (k{i}, a{i})\n'
            f'["/blocks.{i}/Softmax"] q{i} = Softmax <axis = 1> (p{i})\n'
        )
        lines += between if not i else '["/Neg"] y = Neg (q1)\n'
    text = f"agraph (float[2, 3, 8] x) => (float[2, 8] y) {{\n{lines}}}"
    source = check(tmp_path, text, {"x": normal(2, 3, 8)}, weights=linear(layers))
    assert source.count("(nn.Module)") == 2
    assert "self.size" not in source and "reshape(-1, 8)" in source


def test_what_only_pooling_blocks_reshape_to_is_inferred(tmp_path: Path) -> None:
    """The rows are one in all blocks, so that the length is inferred instead."""
    lines, layers = "two = Constant <value_ints = [1]> ()\nv0 = Tanh (x)\n", Layers()
    for i, length in enumerate((4, 2, 0)):
        layers[f"blocks.{i}.fc"] = (8, 8)
        key = f"blocks__{i}__fc"
        lines += (
            f'["/blocks.{i}/fc/MatMul"] h{i} = MatMul (v{i}, {key}__weight)\n'
            f'["/blocks.{i}/fc/Add"] k{i} = Add (h{i}, {key}__bias)\n'
        )
        last = f"k{i}"
        if length:
            lines += (
                f"a{i} = Constant <value_ints = [-1, 2, {length}, 8]> ()\n"
                f'["/blocks.{i}/Reshape"] p{i} = Reshape (k{i}, a{i})\n'
                f'["/blocks.{i}/Max"] m{i} = ReduceMax <keepdims = 0> (p{i}, two)\n'
            )
            last = f"m{i}"
        lines += f'["/blocks.{i}/Softmax"] v{i + 1} = Softmax <axis = 2> ({last})\n'
    lines += '["/Neg"] y = Neg (v3)\n'
    text = f"agraph (float[1, 8, 8] x) => (float[1, 2, 8] y) {{\n{lines}}}"
    source = check(tmp_path, text, {"x": normal(1, 8, 8)}, weights=linear(layers))
    assert source.count("(nn.Module)") == 2
    assert ".reshape(1, 2, -1, 8).max(1)" in source and "self.size" not in source
    assert "Block(pool=True), Block(pool=True), Block(pool=False)" in source


def test_extents_that_a_bound_follows_from_are_not_inferred(tmp_path: Path) -> None:
    """The first entry of a slice is the difference of two extents of reshapes."""
    lines, layers = "axis = Constant <value_ints = [2]> ()\nv0 = Tanh (x)\n", Layers()
    for i, (width, rows, size, start) in enumerate(((8, 8, 6, 3), (5, 10, 3, 2))):
        layers[f"blocks.{i}.fc"] = (width, width)
        key = f"blocks__{i}__fc"
        lines += (
            f'["/blocks.{i}/fc/MatMul"] h{i} = MatMul (v{i}, {key}__weight)\n'
            f'["/blocks.{i}/fc/Add"] k{i} = Add (h{i}, {key}__bias)\n'
            f"a{i} = Constant <value_ints = [1, -1, {rows}, {size}]> ()\n"
            f"b{i} = Constant <value_ints = [{start}]> ()\n"
            f"c{i} = Constant <value_ints = [99]> ()\n"
            f"d{i} = Constant <value_ints = [1, -1, {size}, {rows - start}]> ()\n"
            f'["/blocks.{i}/Reshape"] p{i} = Reshape (k{i}, a{i})\n'
            f'["/blocks.{i}/Slice"] q{i} = Slice (p{i}, b{i}, c{i}, axis)\n'
            f'["/blocks.{i}/Reshape_1"] r{i} = Reshape (q{i}, d{i})\n'
            f'["/blocks.{i}/Softmax"] v{i + 1} = Softmax <axis = 3> (r{i})\n'
        )
    lines += '["/Neg"] y = Neg (v2)\n'
    text = f"agraph (float[1, 4, 6, 8] x) => (float[1, 4, 3, 8] y) {{\n{lines}}}"
    source = check(tmp_path, text, {"x": normal(1, 4, 6, 8)}, weights=linear(layers))
    assert source.count("(nn.Module)") == 2
    assert "self.width = size - size3" in source
