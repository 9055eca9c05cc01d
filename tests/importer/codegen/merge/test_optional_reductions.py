"""Keys that only some layers reduce: by a convolution on their image, and a layer."""

from pathlib import Path

from tests.importer.codegen.merge.test_families import Layers, linear
from tests.importer.looped import check, normal
from tests.modules import Array

SHAPES = "".join(
    f"{name} = Constant <value = int64[{len(numbers)}] {{{str(numbers)[1:-1]}}}> ()\n"
    for name, numbers in {
        "image0": (1, 4, 8, 8),
        "image1": (1, 4, 4, 4),
        "tokens": (1, 4, -1),
        "zero": [0],
        "one": [1],
        "quarter0": [16],
        "quarter1": [4],
    }.items()
)
#: The windows by which stages reduce their keys; the last one does not.
PATCHES = (4, 2, 0)


def reduction(i: int, patch: int) -> str:
    """Return the lines from ``v{i}`` [1, tokens, 4] to the reduced ``k{i}``."""
    steps = (
        f'["/stages.{i}/Transpose"] t{i} = Transpose <perm = [0, 2, 1]> (v{i})',
        f'["/stages.{i}/Reshape"] s{i} = Reshape (t{i}, image{i})',
        f"c{i} = Conv <strides = [{patch}, {patch}]> "
        f"(s{i}, stages__{i}__reduction__weight)",
        f"f{i} = Reshape (c{i}, tokens)",
        f"g{i} = Transpose <perm = [0, 2, 1]> (f{i})",
        f"h{i} = MatMul (g{i}, stages__{i}__mixer__weight)",
        f"k{i} = Add (h{i}, stages__{i}__mixer__bias)",
    )
    return "".join(f"{step}\n" for step in steps)


def test_extents_and_layers_of_a_reduction(tmp_path: Path) -> None:
    lines, layers, arrays = SHAPES + "v0 = Tanh (x)\n", Layers(), dict[str, Array]()
    for i, patch in enumerate(PATCHES):
        keys = f"v{i}"
        if patch:
            shape = (4, 4, patch, patch)
            arrays[f"stages.{i}.reduction.weight"] = normal(*shape, seed=i) / 8
            layers |= {f"stages.{i}.mixer": (4, 4)}
            lines += reduction(i, patch)
            keys = f"k{i}"
        layers |= {f"stages.{i}.key": (4, 4)}
        lines += f"m{i} = MatMul ({keys}, stages__{i}__key__weight)\n"
        lines += f"a{i} = Add (m{i}, stages__{i}__key__bias)\n"
        lines += f'["/stages.{i}/ReduceMean"] e{i} = ReduceMean (a{i}, one)\n'
        lines += f'["/stages.{i}/Sub"] w{i} = Sub (v{i}, e{i})\n'
        cut = f'["/Slice_{i}"] v{i + 1} = Slice (w{i}, zero, quarter{i}, one)\n'
        lines += cut if i < 2 else f'["/Neg"] y = Neg (w{i})\n'
    text = f"agraph (float[1, 64, 4] x) => (float[1, 4, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(1, 64, 4, seed=seed)} for seed in (0, 1)]
    source = check(tmp_path, text, *feeds, weights=linear(layers) | arrays)
    assert source.count("(nn.Module)") == 2
    assert "[Stage(4, 8), Stage(2, 4), Stage(None, 0)]" in source
    assert "if self.reduction is not None" in source
    assert source.count("if patch_size is not None") == 2
