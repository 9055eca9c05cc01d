"""Edits of a generated model by its user: arguments, or a few lines.

The reference is onnxruntime on the network exported with the other sizes: its weights
fit the edited source, and results are equal.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import ndiff
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn.store import WeightsError
from burn_import.pipeline import import_model
from tests.importer.codegen.editable_networks import NETWORKS, Network, Sizes
from tests.modules import generate, import_file, onnxruntime_outputs

MOST_LINES = 3
START = Sizes()
#: A pattern, and the replacement of its matches.
Edit = tuple[str, str]

CLASSES = replace(START, classes=7)
HALF = replace(START, layers=START.layers // 2)
LARGER = replace(START, image=48)

IMAGE: Edit = (r"\[batch, 3, 32, 32\]\"", '[batch, 3, 48, 48]"')
#: Edits for another image size, besides the declaration of the input.
IMAGE_EDITS: Mapping[str, Sequence[Edit]] = {
    "vit": [(r"parameter\(1, 17, 16\)", "parameter(1, 37, 16)")],
    "mixer": [(r"Linear\(16, 20\)", "Linear(36, 20)"), (r"\(20, 16\)", "(20, 36)")],
    "vgg": [(r"Linear\(400,", "Linear(784,")],
    "pixel_attention": [(r"-1, 8, 8\)", "-1, 12, 12)")],
}


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return ``text`` after ``edits``, each of which changes something."""
    result = text
    for pattern, replacement in edits:
        result, count = re.subn(pattern, replacement, result)
        assert count
    changes = ndiff(text.splitlines(), result.splitlines())
    assert sum(line.startswith("+ ") for line in changes) <= MOST_LINES
    return result


def written(name: str, sizes: Sizes, folder: Path) -> tuple[Path, str]:
    """Return the source of a network, written into ``folder`` beside the file."""
    folder.mkdir()
    onnx.save(NETWORKS[name](sizes), folder / "net.onnx")
    return generate(folder / "net.onnx", folder)


def check(
    name: str, sizes: Sizes, folder: Path, edits: Sequence[Edit] = (), **arguments: int
) -> Any:
    """Return the class of the edited source, after a check of its results.

    ``arguments`` are those of the model.
    """
    module, class_name = written(name, START, folder / "original")
    module.write_text(edited(module.read_text(), edits))
    other, _ = written(name, sizes, folder / "other")
    edited_class = getattr(import_file(module), class_name)
    weights = other.with_suffix(".safetensors")
    model = edited_class(**arguments).load_weights(weights)
    image = Network(sizes).normal(2, 3, sizes.image, sizes.image)
    (expected,) = onnxruntime_outputs(folder / "other" / "net.onnx", {"image": image})
    actual = model(burn.tensor(image)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    return edited_class


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.sampled(3)
def test_other_classes(name: str, tmp_path: Path) -> None:
    model_class = check(name, CLASSES, tmp_path, classes=7)
    weights = tmp_path / "original" / "net.safetensors"
    with pytest.raises(WeightsError, match=r"head\.weight"):
        model_class(classes=7).load_weights(weights)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.sampled(3)
def test_half_the_layers(name: str, tmp_path: Path) -> None:
    check(name, HALF, tmp_path, layers=2)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.sampled(3)
def test_larger_images(name: str, tmp_path: Path) -> None:
    check(name, LARGER, tmp_path, [IMAGE, *IMAGE_EDITS.get(name, [])])


def test_a_partial_load_prints_what_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_class = check("vit", CLASSES, tmp_path, classes=7)
    weights = tmp_path / "original" / "net.safetensors"
    state = model_class(classes=7).load_weights(weights, strict=False).state_dict()
    printed = capsys.readouterr().out
    file = dict(import_model(tmp_path / "original" / "net.onnx").weights)
    new = {"head.weight", "head.bias"}
    assert new < set(state)
    for key, value in state.items():
        if key in new:
            assert re.search(rf"mis-shaped +{re.escape(key)} ", printed)
            assert np.isfinite(value.numpy()).all()
        else:
            assert re.search(rf"applied +{re.escape(key)} ", printed)
            np.testing.assert_array_equal(value.numpy(), file[key])
