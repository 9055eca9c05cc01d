"""Sizes that become parameters of the root class, and sizes that must not."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.importer.looped import check, normal
from tests.modules import Array

WIDTH = 4


def linear(weights: dict[str, Array], path: str, wide: int, out: int) -> str:
    """Return the operands of a linear layer after its input; add its weights."""
    weights[f"{path}.weight"] = normal(wide, out, seed=len(weights)) / 4
    weights[f"{path}.bias"] = normal(out, seed=len(weights))
    name = path.replace(".", "__")
    return f"{name}__weight, {name}__bias"


def block(weights: dict[str, Array], path: str, before: str, after: str) -> str:
    """Return the lines of a block of two layers with a residual connection."""
    first = linear(weights, f"{path}.fc1", WIDTH, 7)
    second = linear(weights, f"{path}.fc2", 7, WIDTH)
    return (
        f"{after}h = Gemm ({before}, {first})\n{after}r = Relu ({after}h)\n"
        f"{after}g = Gemm ({after}r, {second})\n"
        f'["/{path.replace(".", "/", 1)}/Add"] {after} = Add ({after}g, {before})\n'
    )


def signature(folder: Path, lines: str, weights: dict[str, Array], out: str) -> str:
    """Return the root's parameters in a model that is checked at two sizes."""
    text = f"agraph (float[n, 4] x) => ({out}) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4)} for n in (1, 3)]
    source = check(folder, text, *feeds, weights=weights)
    match = re.search(r"class Net.*?def __init__\(self,? ?(.*?)\) ->", source, re.S)
    assert match is not None, source
    return match[1]


def test_two_lists_are_told_apart(tmp_path: Path) -> None:
    weights: dict[str, Array] = {}
    lines = "v0 = Tanh (x)\n"
    for i, path in enumerate(["encoder.layers.0", "encoder.layers.1"]):
        lines += block(weights, path, f"v{i}", f"v{i + 1}")
    lines += '["/between/Selu"] w0 = Selu (v2)\n'
    for i in range(3):
        lines += block(weights, f"decoder.layers.{i}", f"w{i}", f"w{i + 1}")
    lines += '["/last/Tanh"] y = Tanh (w3)\n'
    parameters = signature(tmp_path, lines, weights, "float[n, 4] y")
    assert parameters == "encoder_layers: int = 2, decoder_layers: int = 3"


def test_the_blocks_of_one_stage_are_not_the_layers(tmp_path: Path) -> None:
    weights: dict[str, Array] = {}
    lines = "v0 = Tanh (x)\n"
    paths = ["stages.0.layers.0", "stages.0.layers.1", "stages.1.layers.0"]
    for i, path in enumerate(paths):
        lines += block(weights, path, f"v{i}", f"v{i + 1}")
    lines += "y = Tanh (v3)\n"
    assert signature(tmp_path, lines, weights, "float[n, 4] y") == ""


def test_results_of_each_block_fix_their_number(tmp_path: Path) -> None:
    weights: dict[str, Array] = {}
    lines = "v0 = Tanh (x)\n"
    for i in range(2):
        lines += block(weights, f"layers.{i}", f"v{i}", f"v{i + 1}")
    lines += "both = Concat <axis = -1> (v1, v2)\n"
    lines += f"y = Gemm (both, {linear(weights, 'proj', 8, 3)})\n"
    assert signature(tmp_path, lines, weights, "float[n, 3] y") == ""


HEADS = {
    "Softmax <axis = -1> (scores)": "classes: int = 5",
    "Mul (scores, two)": "classes: int = 5",
    # Each of these depends on the number.
    "Add (scores, offsets)": "",
    "Gather <axis = -1> (scores, order)": "",
    "BatchNormalization (scores, offsets, offsets, offsets, variance)": "",
    "Transpose <perm = [0, 1]> (scores)": "classes: int = 5",
}


@pytest.mark.parametrize("last", HEADS)
def test_what_is_done_with_scores(last: str, tmp_path: Path) -> None:
    weights: dict[str, Array] = {
        "two": np.array(2, np.float32),
        "offsets": normal(5),
        "order": np.array([4, 3, 2, 1, 0], np.int64),
        "variance": np.abs(normal(5)) + 1,
    }
    weights = {name: array for name, array in weights.items() if name in last}
    lines = f"scores = Gemm (x, {linear(weights, 'head', 4, 5)})\nlogits = {last}\n"
    out = "float[n, 5] logits"
    assert signature(tmp_path, lines, weights, out) == HEADS[last]


def test_scores_in_another_shape(tmp_path: Path) -> None:
    weights = {"shape": np.array([-1, 2, 3], np.int64)}
    lines = f"scores = Gemm (x, {linear(weights, 'head', 4, 6)})\n"
    lines += "logits = Reshape (scores, shape)\n"
    assert signature(tmp_path, lines, weights, "float[n, 2, 3] logits") == ""


def test_a_vocabulary_is_no_number_of_classes(tmp_path: Path) -> None:
    weights = {"embed.weight": normal(5, 4)}
    lines = "i = ArgMax <axis = 1, keepdims = 0> (x)\n"
    lines += "e = Gather (embed__weight, i)\n"
    lines += f"logits = Gemm (e, {linear(weights, 'head', 4, 5)})\n"
    assert signature(tmp_path, lines, weights, "float[n, 5] logits") == ""


def test_a_tied_bias_fixes_the_classes(tmp_path: Path) -> None:
    weights: dict[str, Array] = {}
    inner = linear(weights, "cell", 4, 4)
    weights["head.weight"] = normal(4, 4, seed=9)
    lines = f"c = Gemm (x, {inner})\nt = Tanh (c)\n"
    lines += "logits = Gemm (t, head__weight, cell__bias)\n"
    assert signature(tmp_path, lines, weights, "float[n, 4] logits") == ""


def test_results_that_no_name_calls_scores(tmp_path: Path) -> None:
    weights: dict[str, Array] = {}
    lines = f"y = Gemm (x, {linear(weights, 'proj', 4, 5)})\n"
    assert signature(tmp_path, lines, weights, "float[n, 5] y") == ""
