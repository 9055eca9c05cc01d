"""Blocks whose queries are every second position of their keys, as in Funnel."""

from pathlib import Path

from tests.importer.codegen.merge.test_families import Layers, linear
from tests.importer.looped import check, normal

POOLED = (False, False, True, False)
NUMBERS = """zero = Constant <value = int64[1] {0}> ()
two = Constant <value = int64[1] {2}> ()
far = Constant <value = int64[1] {-1}> ()
one = Constant <value = int64[1] {1}> ()
"""


def masked(block: int, mask: str) -> tuple[str, str]:
    """Return the line that scales a mask in a block's scope, and its result."""
    scope, name = f"/blocks.{block}/attention", f"scaled_{mask}"
    lines = f'["{scope}/Unsqueeze"] wide_{mask} = Unsqueeze ({mask}, one)\n'
    lines += f'["{scope}/Mul"] {name} = Mul (wide_{mask}, big)\n'
    return lines, name


def attention(block: int, queries: str, keys: str, mask: str, last: str) -> str:
    """Return the lines of one layer, whose products have shapes read from values."""
    n, path = block, f"blocks__{block}__attention"
    lines = f"q{n} = MatMul ({queries}, {path}__q__weight)\n"
    lines += f"k{n} = MatMul ({keys}, {path}__k__weight)\n"
    rows = [
        f"kt{n} = Transpose <perm = [0, 2, 1]> (k{n})",
        f"s{n} = MatMul (q{n}, kt{n})",
        f"e{n} = Shape (s{n})",
        f"f{n} = Expand (bias, e{n})",
        f"b{n} = Add (s{n}, f{n})",
        f"m{n} = Sub (b{n}, {mask})",
        f"p{n} = Softmax <axis = 2> (m{n})",
        f"{last} = MatMul (p{n}, {keys})",
    ]
    for row in rows:
        target = row.partition(" ")[0]
        lines += f'["/blocks.{n}/attention/{target}"] {row}\n'
    return lines


def source(folder: Path) -> str:
    """Return the source of four layers: the third pools, the last has its own mask."""
    lines = NUMBERS + "bias = Constant <value = float[1] {0.5}> ()\n"
    lines += "big = Constant <value = float {9.0}> ()\nx0 = Tanh (x)\n"
    layers: Layers = {}
    mask, scaled = "mask", ""
    for block, pools in enumerate(POOLED):
        layers |= {f"blocks.{block}.attention.{k}": (4, 4) for k in "qk"}
        queries = keys = f"x{block}"
        if pools:
            queries = f"pooled{block}"
            lines += '["/Slice"] '
            lines += f"{queries} = Slice ({keys}, zero, far, one, two)\n"
        if not scaled or POOLED[block - 1]:
            if block:
                lines += '["/Slice_1"] '
                lines += "mask2 = Slice (mask, zero, far, one, two)\n"
                mask = "mask2"
            own, scaled = masked(block, mask)
            lines += own
        last = "y" if block == len(POOLED) - 1 else f"x{block + 1}"
        lines += attention(block, queries, keys, scaled, last)
    head = "agraph (float[n, seq, 4] x, float[n, seq] mask) => (float[n, half, 4] y)"
    feeds = [
        {"x": normal(n, seq, 4, seed=n), "mask": abs(normal(n, seq, seed=seq))}
        for n, seq in ((2, 7), (1, 4))
    ]
    weights = linear(layers)
    weights = {name: array for name, array in weights.items() if "weight" in name}
    return check(folder, f"{head} {{\n{lines}}}", *feeds, weights=weights)


def test_layers_with_other_queries_are_one_class(tmp_path: Path) -> None:
    """The last layer gets its scaled mask from outside, like its siblings."""
    text = source(tmp_path)
    assert text.count("(nn.Module)") == 2
    assert text.count("* 9.0") == 2
    assert "* 9.0" not in text.partition("class Attention")[2]
