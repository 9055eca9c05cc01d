"""Views that only the first and the last layer have run around the layers."""

from pathlib import Path

from tests.importer.codegen.merge.test_families import Layers, linear
from tests.importer.looped import check, normal

SHAPES = (
    "rows = Constant <value = int64[2] {-1, 4}> ()\n"
    "images = Constant <value = int64[3] {-1, 2, 4}> ()\n"
)


def layers(folder: Path, starts: tuple[bool, ...], ends: tuple[bool, ...]) -> str:
    """Return the source of layers that reshape to rows, and back to images."""
    lines, weights = SHAPES + '["/Tanh"] v0 = Tanh (x)\n', Layers()
    for i, (starts_here, ends_here) in enumerate(zip(starts, ends, strict=True)):
        weights |= {f"layers.{i}.fc": (4, 4)}
        scope, given = f"/layers.{i}", f"v{i}"
        if starts_here:
            lines += f'["{scope}/Reshape"] r{i} = Reshape (v{i}, rows)\n'
            given = f"r{i}"
        lines += (
            f'["{scope}/fc/MatMul"] m{i} = MatMul ({given}, layers__{i}__fc__weight)\n'
        )
        lines += f'["{scope}/fc/Add"] a{i} = Add (m{i}, layers__{i}__fc__bias)\n'
        lines += f'["{scope}/Relu"] u{i} = Relu (a{i})\n'
        result = f"w{i}" if ends_here else f"v{i + 1}"
        lines += f'["{scope}/Sub"] {result} = Sub (u{i}, {given})\n'
        if ends_here:
            lines += f'["{scope}/Reshape_1"] v{i + 1} = Reshape (w{i}, images)\n'
    text = (
        "agraph (float[3, 2, 4] x) => (float[3, 2, 4] y) {\n"
        f'{lines}["/Neg"] y = Neg (v{len(starts)})\n}}'
    )
    feeds = [{"x": normal(3, 2, 4, seed=seed)} for seed in (0, 1)]
    return check(folder, text, *feeds, weights=linear(weights))


def test_views_of_the_first_and_the_last_layer(tmp_path: Path) -> None:
    source = layers(tmp_path, (True, False, False), (False, False, True))
    assert source.count("(nn.Module)") == 2
    assert "x = ops.tanh(x).reshape(-1, 4)" in source
    assert "for layer in self.layers:" in source


def test_views_of_several_layers_stay(tmp_path: Path) -> None:
    several = (True, False, True)
    source = layers(tmp_path, several, several)
    assert source.count("(nn.Module)") == 3
    assert "x = x.reshape(-1, 4)" in source


def test_a_view_in_the_middle_stays(tmp_path: Path) -> None:
    """Around the second layer it would cut the loop over the layers in two."""
    middle = (False, True, False)
    source = layers(tmp_path, middle, middle)
    assert source.count("(nn.Module)") == 3


def test_a_view_of_a_weight_stays_in_its_layer(tmp_path: Path) -> None:
    lines, weights = '["/Tanh"] v0 = Tanh (x)\n', Layers()
    lines += "row = Constant <value = int64[2] {1, 4}> ()\n"
    for i in range(3):
        weights |= {f"layers.{i}.fc": (4, 4)}
        scope, given = f"/layers.{i}", f"v{i}"
        if i == 0:
            lines += f'["{scope}/Reshape"] s = Reshape (layers__0__shift, row)\n'
            lines += f'["{scope}/Add"] t = Add (v0, s)\n'
            given = "t"
        lines += f'["{scope}/fc/MatMul"] m{i} = MatMul ({given}, '
        lines += f"layers__{i}__fc__weight)\n"
        lines += f'["{scope}/fc/Add_1"] a{i} = Add (m{i}, layers__{i}__fc__bias)\n'
        lines += f'["{scope}/Relu"] v{i + 1} = Relu (a{i})\n'
    text = (
        "agraph (float[3, 4] x) => (float[3, 4] y) {\n"
        f'{lines}["/Neg"] y = Neg (v3)\n}}'
    )
    arrays = {"layers.0.shift": normal(4, seed=9)}
    feeds = [{"x": normal(3, 4, seed=seed)} for seed in (0, 1)]
    source = check(tmp_path, text, *feeds, weights=linear(weights) | arrays)
    assert "self.layers[0].shift" not in source
