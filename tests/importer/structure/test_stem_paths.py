"""Module paths of layers in files without scopes, from the names of their weights."""

import pytest

from burn_import.provenance.path_segments import Path
from burn_import.structure.stem_paths import stem_paths


def paths(*stems: str) -> list[Path | None]:
    return stem_paths([(stem, "Conv") for stem in stems])


def test_a_norm_beside_the_layer_of_its_name() -> None:
    assert paths("block/x1/bn", "block/x1", "block/x2") == [
        ("block", "x1_bn"),
        ("block", "x1"),
        ("block", "x2"),
    ]


def test_numbered_prefixes_are_modules() -> None:
    assert paths("res2_0_a", "res2_0_b", "res2_1_a", "res2_1_b") == [
        ("res2_0", "a"),
        ("res2_0", "b"),
        ("res2_1", "a"),
        ("res2_1", "b"),
    ]


@pytest.mark.parametrize(
    "stems",
    [
        pytest.param(("conv1_a", "conv1_b"), id="one prefix"),
        pytest.param(("conv1_a", "conv2_a"), id="one layer in common"),
        pytest.param(("a1_x", "b1_x", "a1_y", "b1_y"), id="other layers between"),
        pytest.param(
            ("conv1", "conv1_bn", "conv1_act", "conv2", "conv2_bn", "conv2_act"),
            id="the prefix is a layer",
        ),
        pytest.param(
            ("conv2_1_x", "conv2_a", "conv2_b", "conv3_1_x", "conv3_a", "conv3_b"),
            id="the prefix of a list",
        ),
        pytest.param(("x3x3_a", "x3x3_b"), id="a number of the name"),
    ],
)
def test_other_prefixes_are_part_of_the_name(stems: tuple[str, ...]) -> None:
    assert paths(*stems) == [(stem,) for stem in stems]


def test_a_module_of_one_layer_is_its_layer() -> None:
    assert paths("loss3/classifier", "fc") == [("loss3_classifier",), ("fc",)]


def test_modules_of_one_layer_that_repeat_stay() -> None:
    assert paths("block1/conv", "block2/conv") == [
        ("block1", "conv"),
        ("block2", "conv"),
    ]


@pytest.mark.parametrize("stem", ["", "7", "onnx_conv_1", "weight"])
def test_names_that_say_nothing(stem: str) -> None:
    assert paths(stem) == [None]


def test_an_array_without_a_name_is_named_by_its_operator() -> None:
    assert paths("block1/weight", "block2/weight") == [
        ("block1", "conv"),
        ("block2", "conv"),
    ]
