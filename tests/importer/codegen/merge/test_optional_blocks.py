"""Statements that only some blocks have are run under a condition."""

from pathlib import Path

from tests.importer.codegen.merge.test_families import Layers, gemm, linear
from tests.importer.looped import check, normal
from tests.modules import Array

#: Statements between the two layers of a block, by what they are.
STEPS = {
    "mask": "m{i} = Add (r{i}, blocks__{i}__mask)\n",
    "shift": "s{i} = Slice (r{i}, two, four, one)\n"
    "t{i} = Slice (r{i}, zero, two, one)\n"
    "m{i} = Concat <axis = 1> (s{i}, t{i})\n",
    "two": "d{i} = Softsign (r{i})\nm{i} = Sin (d{i})\n",
}
NUMBERS = "".join(
    f"{name} = Constant <value = int64[1] {{{number}}}> ()\n"
    for name, number in {"zero": 0, "one": 1, "two": 2, "four": 4}.items()
)


def blocks(folder: Path, step: str, having: tuple[bool, ...]) -> str:
    """Return the source of a model of blocks, some of which have ``step``."""
    lines, layers, arrays = NUMBERS + "v0 = Tanh (x)\n", Layers(), dict[str, Array]()
    for i, has in enumerate(having):
        layers |= {f"blocks.{i}.fc1": (4, 4), f"blocks.{i}.fc2": (4, 4)}
        lines += gemm(f"h{i}", f"blocks.{i}.fc1", f"v{i}") + f"r{i} = Relu (h{i})\n"
        if has:
            lines += STEPS[step].format(i=i)
            if step == "mask":
                arrays[f"blocks.{i}.mask"] = normal(4, seed=i)
        lines += gemm(f"g{i}", f"blocks.{i}.fc2", f"{'m' if has else 'r'}{i}")
        lines += f"v{i + 1} = Neg (g{i})\n"
    lines += f"z = Tanh (x)\ny = Sub (v{len(having)}, z)\n"
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4, seed=n)} for n in (1, 3)]
    return check(folder, text, *feeds, weights=linear(layers) | arrays)


def test_an_array_that_some_add(tmp_path: Path) -> None:
    source = blocks(tmp_path, "mask", (False, True, True))
    assert source.count("(nn.Module)") == 2
    assert "self.mask: nn.Buffer | None = nn.buffer(4) if mask else None" in source
    assert "if self.mask is not None" in source


def test_an_operator_that_some_have_in_the_middle(tmp_path: Path) -> None:
    source = blocks(tmp_path, "shift", (True, False, True))
    assert source.count("(nn.Module)") == 2
    assert "shifts=-2, axes=1) if self.shift else x" in source
    assert "Block(shift=True), Block(shift=False), Block(shift=True)" in source


def test_several_operators_are_another_class(tmp_path: Path) -> None:
    assert blocks(tmp_path, "two", (True, False)).count("(nn.Module)") == 3


def test_a_block_whose_place_another_argument_takes(tmp_path: Path) -> None:
    """The last block gets what the others compute, as in a model cut in two."""
    lines, layers = "v0 = Tanh (x)\n", Layers()

    def scoped(block: int, name: str, text: str) -> str:
        return f'["/blocks.{block}/{name}"] {text}\n'

    for i in range(3):
        read = "w"
        layers |= {f"blocks.{i}.fc": (4, 4)}
        if i < 2:
            layers |= {f"blocks.{i}.first": (4, 4), f"blocks.{i}.second": (4, 4)}
            lines += gemm(f"f{i}", f"blocks.{i}.first", f"v{i}")
            lines += scoped(i, "Neg", f"n{i} = Neg (f{i})")
            lines += gemm(f"read{i}", f"blocks.{i}.second", f"n{i}")
            read = f"read{i}"
        lines += gemm(f"g{i}", f"blocks.{i}.fc", read)
        lines += scoped(i, "Relu", f"r{i} = Relu (g{i})")
        lines += scoped(i, "Add", f"v{i + 1} = Add (r{i}, v{i})")
    inputs = "float[n, 4] x, float[n, 4] w"
    lines += "z = Tanh (x)\ny = Sub (v3, z)\n"
    text = f"agraph ({inputs}) => (float[n, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4), "w": normal(n, 4, seed=1)} for n in (1, 3)]
    source = check(tmp_path, text, *feeds, weights=linear(layers))
    assert "x = -self.first(x)" in source


def two_blocks(folder: Path, steps: list[list[str]], ends: list[str]) -> str:
    """Return the source of two blocks: the steps, a layer, and a sum with ``ends``."""
    lines, layers = "v0 = Tanh (x)\n", Layers()
    for i, (own, end) in enumerate(zip(steps, ends, strict=True)):
        last = f"v{i}"
        for number, name in enumerate(own):
            result = f"s{i}_{number}"
            if name == "first":
                layers |= {f"blocks.{i}.first": (4, 4)}
                lines += gemm(result, f"blocks.{i}.first", last)
            else:
                lines += f'["/blocks.{i}/{name}"] {result} = {name} ({last})\n'
            last = result
        layers |= {f"blocks.{i}.fc": (4, 4)}
        lines += gemm(f"g{i}", f"blocks.{i}.fc", last)
        lines += f'["/blocks.{i}/Relu"] r{i} = Relu (g{i})\n'
        lines += f'["/blocks.{i}/Add"] v{i + 1} = Add (r{i}, {end or last})\n'
    lines += "z = Tanh (x)\ny = Sub (v2, z)\n"
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4, seed=n)} for n in (1, 3)]
    return check(folder, text, *feeds, weights=linear(layers))


def test_a_result_that_one_of_two_readers_has_everywhere(tmp_path: Path) -> None:
    """Both layers read ``-x``, but only one sum does."""
    source = two_blocks(tmp_path, [["Neg"], ["Neg"]], ["", "v1"])
    assert source.count("(nn.Module)") == 3


def test_readers_that_get_different_values_without_the_block(tmp_path: Path) -> None:
    """Instead of the first layer, one reader gets ``softsign(x)`` and one ``x``."""
    steps = [["Softsign", "first", "Neg"], ["Softsign"]]
    source = two_blocks(tmp_path, steps, ["", "v1"])
    assert source.count("(nn.Module)") == 3
