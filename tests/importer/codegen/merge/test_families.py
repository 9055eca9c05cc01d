"""Classes that differ in numbers, arguments or an optional module are merged."""

from pathlib import Path

import numpy as np
import pytest

from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.expression_slots import MISSING, DifferError
from burn_import.codegen.merge.init_fields import Column, Field
from tests.importer.looped import check, normal
from tests.modules import Array

Layers = dict[str, tuple[int, int]]


def linear(layers: Layers) -> dict[str, Array]:
    """Return weights and biases of linear layers by their paths."""
    results: dict[str, Array] = {}
    for seed, (path, (wide, out)) in enumerate(layers.items()):
        results[f"{path}.weight"] = normal(wide, out, seed=seed) / 4
        results[f"{path}.bias"] = normal(out, seed=seed + 50)
    return results


def gemm(target: str, path: str, source: str) -> str:
    """Return the line of a linear layer."""
    name = path.replace(".", "__")
    return f"{target} = Gemm ({source}, {name}__weight, {name}__bias)\n"


def imported(folder: Path, lines: str, layers: Layers, inputs: str = "x") -> str:
    """Return the source of a model of rows of four, checked at two sizes."""
    names = inputs.split()
    given = ", ".join(f"float[n, 4] {name}" for name in names)
    text = f"agraph ({given}) => (float[n, 4] y) {{\n{lines}}}"
    feeds = [
        {name: normal(n, 4, seed=i) for i, name in enumerate(names)} for n in (1, 3)
    ]
    return check(folder, text, *feeds, weights=linear(layers))


def body(i: int, function: str = "Relu") -> str:
    """Return the lines of a block of two layers, from ``v{i}`` to ``g{i}``."""
    text = gemm(f"h{i}", f"blocks.{i}.fc1", f"v{i}") + f"r{i} = {function} (h{i})\n"
    return text + gemm(f"g{i}", f"blocks.{i}.fc2", f"r{i}")


def test_a_module_that_some_have(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    layers: Layers = {}
    for i in range(3):
        layers |= {f"blocks.{i}.fc1": (4, 6 + i), f"blocks.{i}.fc2": (6 + i, 4)}
        lines += body(i)
        skip = f"v{i}"
        if i == 1:
            layers["blocks.1.down"] = (4, 4)
            lines += gemm("d1", "blocks.1.down", "v1")
            skip = "d1"
        lines += f'["/blocks.{i}/Add"] a{i} = Add (g{i}, {skip})\n'
        lines += f'["/blocks.{i}/Selu"] v{i + 1} = Selu (a{i})\n'
    source = imported(tmp_path, lines + "z = Tanh (x)\ny = Sub (v3, z)\n", layers)
    assert "def __init__(self, features: int, down: bool) -> None:" in source
    assert "nn.Linear(4, 4) if down else nn.Identity()" in source
    assert "Block(7, down=True)" in source
    assert source.count("(nn.Module)") == 2


def test_a_parameter_does_not_hide_the_class_of_a_module(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    layers: Layers = {}
    for i in range(3):
        layers |= {f"blocks.{i}.fc1": (4, 6), f"blocks.{i}.fc2": (6, 4)}
        lines += body(i)
        skip = f"v{i}"
        if i == 1:
            layers |= {"blocks.1.Down.a": (4, 4), "blocks.1.Down.b": (4, 4)}
            lines += gemm("c1", "blocks.1.Down.a", "v1")
            lines += "e1 = Relu (c1)\n" + gemm("d1", "blocks.1.Down.b", "e1")
            skip = "d1"
        lines += f'["/blocks.{i}/Add"] a{i} = Add (g{i}, {skip})\n'
        lines += f'["/blocks.{i}/Selu"] v{i + 1} = Selu (a{i})\n'
    source = imported(tmp_path, lines + "z = Tanh (x)\ny = Sub (v3, z)\n", layers)
    assert "def __init__(self, down: bool) -> None:" in source
    assert "Down() if down else nn.Identity()" in source


def attending(path: str, target: str, query: str, key: str) -> tuple[str, Layers]:
    """Return the lines and layers of something like attention."""
    lines = gemm(f"{target}q", f"{path}.q", query) + gemm(
        f"{target}k", f"{path}.k", key
    )
    lines += f"{target}s = Mul ({target}q, {target}k)\n{target}t = Tanh ({target}s)\n"
    lines += gemm(target, f"{path}.out", f"{target}t")
    return lines, {f"{path}.{name}": (4, 4) for name in ("q", "k", "out")}


def test_what_attends_to_itself_and_to_others_is_one(tmp_path: Path) -> None:
    first, layers = attending("layer.self_attn", "a", "x0", "x0")
    second, more = attending("layer.cross_attn", "b", "x1", "memory")
    lines = f"x0 = Tanh (x)\n{first}x1 = Add (x0, a)\n{second}y = Add (x1, b)\n"
    source = imported(tmp_path, lines, layers | more, "x memory")
    assert "self.self_attn = Attn()" in source
    assert "self.cross_attn = Attn()" in source
    assert source.count("class ") == 2


def test_numbers_of_a_body_are_given(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\n"
    layers: Layers = {}
    for i, heads in enumerate((2, 4)):
        wide = (8, 24)[i]
        layers |= {f"blocks.{i}.fc1": (4, wide), f"blocks.{i}.fc2": (wide, 4)}
        lines += gemm(f"h{i}", f"blocks.{i}.fc1", f"v{i}")
        lines += f"s{i} = Constant <value_ints = [-1, {heads}, {wide // heads}]> ()\n"
        lines += f"c{i} = Reshape (h{i}, s{i})\nm{i} = Softmax <axis = 1> (c{i})\n"
        lines += f"p{i} = Constant <value_ints = [-1, {wide}]> ()\n"
        lines += f"f{i} = Reshape (m{i}, p{i})\n"
        lines += gemm(f"g{i}", f"blocks.{i}.fc2", f"f{i}")
        lines += f"v{i + 1} = Add (g{i}, v{i})\n"
    source = imported(tmp_path, lines + "y = Neg (v2)\n", layers)
    assert source.count("(nn.Module)") == 2
    assert "nn.Linear(4, features)" in source
    assert "self.size = size" in source


def test_a_layer_that_others_read_runs_around_them(tmp_path: Path) -> None:
    lines = "v0 = Tanh (x)\nextent = Shape (x)\nzero = Constant <value_int = 0> ()\n"
    lines += "one = Constant <value_int = 1> ()\nrows = Gather (extent, zero)\n"
    lines += "places = Range (zero, rows, one)\n"
    layers: Layers = {}
    for i in range(3):
        layers |= {f"blocks.{i}.fc1": (4, 6), f"blocks.{i}.fc2": (6, 4)}
        lines += gemm(f"h{i}", f"blocks.{i}.fc1", f"v{i}")
        if i == 0:
            lines += "bias = Gather (blocks__0__bias__weight, places)\n"
        lines += f'["/blocks.{i}/Mul"] b{i} = Mul (h{i}, bias)\n'
        lines += gemm(f"g{i}", f"blocks.{i}.fc2", f"b{i}")
        lines += f"v{i + 1} = Add (g{i}, v{i})\n"
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}y = Neg (v3)\n}}"
    feeds = [{"x": normal(n, 4)} for n in (1, 3)]
    arrays = linear(layers) | {"blocks.0.bias.weight": normal(5, 6)}
    source = check(tmp_path, text, *feeds, weights=arrays)
    assert "self.blocks[0].bias(" in source
    assert "nn.Embedding(5, 6) if bias else nn.Identity()" in source
    assert "for block in self.blocks:" in source


def test_lists_of_other_lengths_are_given_a_depth(tmp_path: Path) -> None:
    lines, value = "v0 = Tanh (x)\n", "v0"
    layers: Layers = {}
    for stage, depth in enumerate((2, 3)):
        for block in range(depth):
            path = f"stages.{stage}.blocks.{block}"
            layers |= {f"{path}.fc1": (4, 6), f"{path}.fc2": (6, 4)}
            name = f"{stage}_{block}"
            lines += (
                gemm(f"h{name}", f"{path}.fc1", value) + f"r{name} = Relu (h{name})\n"
            )
            value = f"g{name}"
            lines += gemm(value, f"{path}.fc2", f"r{name}")
        layers[f"stages.{stage}.end"] = (4, 4)
        lines += gemm(f"e{stage}", f"stages.{stage}.end", value)
        value = f"e{stage}"
    source = imported(tmp_path, lines + f"z = Tanh (x)\ny = Sub ({value}, z)\n", layers)
    assert "def __init__(self, depth: int) -> None:" in source
    assert "Block() for _ in range(depth)" in source
    assert "nn.Sequential(Stage(2), Stage(3))" in source


@pytest.mark.parametrize("changed", ["function", "reader"])
def test_what_computes_something_else_stays(tmp_path: Path, changed: str) -> None:
    lines = "v0 = Tanh (x)\n"
    layers: Layers = {}
    for i in range(2):
        layers |= {f"blocks.{i}.fc1": (4, 4), f"blocks.{i}.fc2": (4, 4)}
        odd = i == 1
        lines += body(i, "Softsign" if odd and changed == "function" else "Relu")
        pair = [f"g{i}", f"v{i}"]
        if odd and changed == "reader":
            pair[0] = f"r{i}"
            lines += f"z{i} = Sub (g{i}, r{i})\n"
            pair[1] = f"z{i}"
        lines += f"v{i + 1} = Sub ({', '.join(pair)})\n"
    source = imported(tmp_path, lines + "y = Neg (v2)\n", layers)
    assert source.count("(nn.Module)") == 3


def columns(**rows: tuple[object, ...]) -> list[Column]:
    """Return a column for each label."""
    return [Column(row, label, "fc") for label, row in rows.items()]


def test_widths_follow_from_widths() -> None:
    rows = columns(in_features=(8, 16, 24), out_features=(32, 64, 96))
    result = constructor(rows, [])
    assert result.signature == ", in_features: int"
    assert result.texts == ["in_features", "4 * in_features"]
    assert result.call("Block", 2) == "Block(24)"


def test_equal_numbers_are_one_parameter_with_the_name_of_both() -> None:
    rows = columns(in_channels=(8, 16), out_channels=(8, 16), groups=(2, 4))
    result = constructor(rows, [])
    assert result.signature == ", channels: int, groups: int"
    assert result.texts == ["channels", "channels", "groups"]


def test_a_number_of_a_module_that_some_lack_tells_who_has_it() -> None:
    rows = columns(out_features=(8, 16, 24), kernel_size=(3, MISSING, 5))
    field = Field("fc", "slot_1_", (True, False, True))
    result = constructor(rows, [field])
    assert result.signature == ", out_features: int, kernel_size: int | None"
    assert result.conditions == {"fc": "kernel_size is not None"}
    assert result.call("Block", 1) == "Block(16, None)"


def test_two_numbers_that_differ_tell_who_has_a_module() -> None:
    rows = columns(in_channels=(8, 8, 16), out_channels=(8, 12, 30))
    field = Field("down", "nn.Linear(1, 2)", (False, True, True))
    assert constructor(rows, [field]).conditions == {
        "down": "in_channels != out_channels"
    }


@pytest.mark.parametrize(
    "row", [(1, "a"), (1.0, 2), (np.int8(1), np.int8(2)), ((1, 2.0), (1, 3.0))]
)
def test_numbers_of_several_kinds_are_no_parameter(row: tuple[object, ...]) -> None:
    with pytest.raises(DifferError):
        constructor([Column(row, "value", "fc")], [])


def test_more_parameters_than_explain_are_none() -> None:
    rows = columns(**{f"size_{i}": (i + 1, 2**i + 7) for i in range(10)})
    with pytest.raises(DifferError):
        constructor(rows, [])


def windowed(i: int, windows: int, heads: int) -> tuple[str, dict[str, Array]]:
    """Return a block of windows of 2 x 2 with heads of 4, from ``v{i}`` to ``r{i}``."""
    wide, side = 4 * heads, 2 * windows
    path = f"blocks.{i}.qkv"
    weights = {
        f"{path}.weight": normal(wide, 3 * wide, seed=i) / 4,
        f"{path}.bias": normal(3 * wide, seed=i + 50),
    }
    key = path.replace(".", "__")
    steps = (
        ("a", f"Reshape (v{i}, s0)", (-1, windows, 2, windows, 2, wide)),
        ("b", f"Transpose <perm = [0, 1, 3, 2, 4, 5]> (a{i})", ()),
        ("c", f"Reshape (b{i}, s2)", (-1, 4, wide)),
        ("qkv/d", f"MatMul (c{i}, {key}__weight)", ()),
        ("qkv/e", f"Add (d{i}, {key}__bias)", ()),
        ("f", f"Reshape (e{i}, s5)", (-1, 4, 3, heads, 4)),
        ("g", f"Transpose <perm = [2, 0, 3, 1, 4]> (f{i})", ()),
        ("h", f"ReduceSum <keepdims = 0> (g{i}, s7)", (0,)),
        ("k", f"Transpose <perm = [0, 2, 1, 3]> (h{i})", ()),
        ("m", f"Reshape (k{i}, s9)", (-1, windows, windows, 2, 2, wide)),
        ("p", f"Transpose <perm = [0, 1, 3, 2, 4, 5]> (m{i})", ()),
        ("q", f"Reshape (p{i}, s11)", (-1, side, side, wide)),
        ("r", f"Add (v{i}, q{i})", ()),
    )
    lines = ""
    for number, (name, call, numbers) in enumerate(steps):
        if numbers:
            shape = f"s{i}_{number}"
            values = ", ".join(map(str, numbers))
            lines += f"{shape} = Constant <value_ints = [{values}]> ()\n"
            call = call.replace(f"s{number})", f"{shape})")
        target = f"{name.rpartition('/')[2]}{i}"
        lines += f'["/blocks.{i}/{name}"] {target} = {call}\n'
    return lines, weights


@pytest.mark.parametrize("last", [1, 2])
def test_numbers_of_heads_and_windows_are_called_so(tmp_path: Path, last: int) -> None:
    first, weights = windowed(0, 2 * last, 2)
    second, more = windowed(1, last, 4)
    size = 4 * last
    lines = f"""v0 = Tanh (x)
{first}["/Transpose"] t = Transpose <perm = [0, 3, 1, 2]> (r0)
["/AveragePool"] s = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (t)
u = Transpose <perm = [0, 2, 3, 1]> (s)
v1 = Concat <axis = -1> (u, u)
{second}["/Neg"] y = Neg (r1)
"""
    types = f"(float[n, {size}, {size}, 8] x) => "
    types += f"(float[n, {2 * last}, {2 * last}, 16] y)"
    feeds = [{"x": normal(n, size, size, 8)} for n in (1, 3)]
    text = f"agraph {types} {{\n{lines}}}"
    source = check(tmp_path, text, *feeds, weights=weights | more)
    assert source.count("(nn.Module)") == 2
    for word in ("self.heads = heads", "self.windows = windows"):
        assert word in source


def test_widths_of_paddings(tmp_path: Path) -> None:
    layers: Layers = {}
    lines = "v0 = Identity (x)\n"
    for i in range(2):
        layers |= {f"blocks.{i}.fc1": (8 + i, 4), f"blocks.{i}.fc2": (4, 4)}
        lines += f"p{i} = Constant <value_ints = [0, {i + 1}, 0, 3]> ()\n"
        lines += f'["/blocks.{i}/Pad"] w{i} = Pad <mode = "edge"> (v{i}, p{i})\n'
        lines += body(i).replace(f"(v{i},", f"(w{i},")
        lines += f"v{i + 1} = Identity (g{i})\n"
    source = imported(tmp_path, lines + "y = Identity (v2)\n", layers)
    assert source.count("(nn.Module)") == 2
    assert 'ops.pad(x, (0, self.padding, 0, 3), mode="edge")' in source


def test_a_sequence_with_the_name_of_a_class(tmp_path: Path) -> None:
    """It is written out in the module around it, and takes one operand."""
    layers: Layers = {}
    lines = "v0 = Identity (x)\n"
    for i in range(2):
        path, size = f"downs.{i}.0", 5 + i
        layers |= {f"{path}.fc1": (4, size), f"{path}.fc2": (size, 4)}
        lines += gemm(f"h{i}", f"{path}.fc1", f"v{i}")
        lines += f'["/{path}/Relu"] r{i} = Relu (h{i})\n'
        lines += gemm(f"g{i}", f"{path}.fc2", f"r{i}")
        lines += f'["/{path}/Mul"] m{i} = Mul (g{i}, t)\n'
        layers |= {f"downs.{i}.1.{n}": (4, 4) for n in (0, 2)}
        lines += gemm(f"a{i}", f"downs.{i}.1.0", f"m{i}")
        lines += f'["/downs.{i}/downs.{i}.1/downs.{i}.1.1/Relu"] b{i} = Relu (a{i})\n'
        lines += gemm(f"v{i + 1}", f"downs.{i}.1.2", f"b{i}")
    source = imported(tmp_path, lines + "y = Identity (v2)\n", layers, "x t")
    assert source.count("(nn.Module)") == 2
    assert "def __call__(self, x: Tensor, t: Tensor)" in source
