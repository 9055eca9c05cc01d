"""Sequences of layers that differ only in numbers share a class."""

from pathlib import Path

import numpy as np

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.repeated_sequences import with_sequence_classes
from tests.importer.looped import check, normal, parsed
from tests.importer.onnx_files import saved
from tests.modules import Array, generate, import_file

#: The widths of each sequence, and its activation.
Steps = list[tuple[int, int, str]]
THREE: Steps = [(3, 4, "Relu"), (4, 6, "Relu"), (6, 8, "Relu")]


def model(steps: Steps) -> tuple[str, dict[str, Array]]:
    """Return a model of sequences called ``a``, ``b``, ... and its weights."""
    weights: dict[str, Array] = {}
    lines = ""
    for i, (given, width, function) in enumerate(steps):
        path = f"{'abcd'[i]}"
        for layer, size in ((0, given), (2, width)):
            name = f"{path}.{layer}"
            weights[f"{name}.weight"] = normal(width, size, 3, 3, seed=layer) / 16
            weights[f"{name}.bias"] = normal(width, seed=layer)
        for layer, source in ((0, f"v{i}"), (2, f"r{i}")):
            target = f"{path}__{layer}"
            result = f"c{i}" if layer == 0 else f"v{i + 1}"
            lines += f'["/{path}/{path}.{layer}/Conv"] {result} = '
            lines += f"Conv <pads = [1, 1, 1, 1]> ({source}, "
            lines += f"{target}__weight, {target}__bias)\n"
            if layer == 0:
                lines += f'["/{path}/{path}.1/{function}"] r{i} = {function} (c{i})\n'
    out = steps[-1][1]
    shapes = f"(float[n, 3, 5, 5] v0) => (float[n, {out}, 5, 5] v{len(steps)})"
    return f"agraph {shapes} {{\n{lines}}}", weights


def test_three_sequences_are_one_class(tmp_path: Path) -> None:
    text, weights = model(THREE)
    source = check(tmp_path, text, {"v0": normal(2, 3, 5, 5)}, weights=weights)
    assert "class ConvLayers(nn.Sequential):" in source
    for line in (
        "a = ConvLayers(3, 4)",
        "b = ConvLayers(4, 6)",
        "c = ConvLayers(6, 8)",
    ):
        assert f"self.{line}" in source


def test_keys_are_those_of_the_sequences(tmp_path: Path) -> None:
    text, weights = model(THREE)
    path = saved(tmp_path / "net.onnx", parsed(text, weights))
    module, name = generate(path, tmp_path)
    state = getattr(import_file(module), name).load().state_dict()
    assert set(state) == set(weights)
    for key, value in state.items():
        np.testing.assert_array_equal(value.numpy(), weights[key])


def test_two_sequences_stay_where_they_are(tmp_path: Path) -> None:
    text, weights = model(THREE[:2])
    source = check(tmp_path, text, {"v0": normal(2, 3, 5, 5)}, weights=weights)
    assert "(nn.Sequential):" not in source


def test_another_activation_is_another_sequence(tmp_path: Path) -> None:
    text, weights = model([*THREE[:2], (6, 8, "Sigmoid")])
    source = check(tmp_path, text, {"v0": normal(2, 3, 5, 5)}, weights=weights)
    assert "(nn.Sequential):" not in source


def blocks(*constructors: str) -> list[ClassText]:
    """Classes with a sequence that reads the parameter ``features``."""
    field = (
        "self.mlp = nn.Sequential(nn.Linear(features, 4 * features), ops.relu, "
        "nn.Linear(4 * features, features))"
    )
    return [
        ClassText(f"Block{number}", "", [field], constructor=constructor)
        for number, constructor in enumerate(constructors)
    ]


def test_parameters_of_the_classes_around_are_passed_on() -> None:
    *texts, mlp = with_sequence_classes(blocks(*[", features: int"] * 3))
    assert [text.fields for text in texts] == [["self.mlp = Mlp(features)"]] * 3
    assert (mlp.name, mlp.constructor) == ("Mlp", ", features: int")
    assert mlp.steps.startswith("nn.Linear(features, 4 * features)")


def test_parameters_of_several_types_are_not_passed_on() -> None:
    texts = blocks(", features: int", ", features: int", ", features: float")
    assert with_sequence_classes(texts) == texts


def test_numbers_and_parameters_are_arguments() -> None:
    texts = blocks(*[", features: int"] * 3)
    for number, text in enumerate(texts):
        text.fields = [text.fields[0].replace("4 * features", f"{8 * number + 8}")]
    *texts, mlp = with_sequence_classes(texts)
    assert texts[2].fields == ["self.mlp = Mlp(features, 24)"]
    assert mlp.constructor.startswith(", features: int, ")
