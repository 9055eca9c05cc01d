"""Modules, values and dimensions with names that generated source uses."""

import builtins
import keyword
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest

from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_import.tracing.identifiers import FORBIDDEN, RESERVED, plural
from tests.importer.structure.scoped_net import ScopedNet, check_import

#: Words that cannot name a class, a local and an attribute at once.
WORDS = sorted({*RESERVED, "load", "to", "valid", "list", "class", "None", "int"})


@pytest.mark.parametrize("word", ["self", "tensor", "path", "named_tuple", "warning"])
def test_what_the_names_of_two_classes_share(tmp_path: Path, word: str) -> None:
    """As in BLIP: ``attention.self`` and ``crossattention.self`` are one class."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for around, width in (("one", 3), ("two", 5)):
        scope = f"{around}.{word}"
        query = net.linear(f"{scope}.query", x, 4, width)
        key = net.linear(f"{scope}.key", x, 4, width)
        gate = net.run("Sigmoid", scope, query)
        y = net.run("Mul", scope, gate, key)
        y = net.linear(f"{scope}.dense", net.run("Tanh", scope, y), width, 4)
        x = net.linear(f"{around}.output", net.run("Relu", around, y), 4, 4)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert actual.keys == set(net.weights)


def test_a_module_called_like_the_root_has_the_name_of_its_owner(
    tmp_path: Path,
) -> None:
    net = ScopedNet()
    x = net.linear("ff.net.proj", net.input("x", 2, 4), 4, 4)
    x = net.linear("ff.out", net.run("Tanh", "ff.net", x), 4, 4)
    x = net.linear("head", x, 4, 4)
    path = tmp_path / "net.onnx"
    path.write_bytes(net.model(x).SerializeToString())
    text = import_model(path, Options(class_name="Net")).text
    assert "class FfNet(nn.Module):" in text


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.sampled(6)
def test_modules_and_values(tmp_path: Path, word: str) -> None:
    net = ScopedNet()
    x = net.input(word, 2, 4)
    for index in range(2):
        scope = f"blocks.{index}.{word}"
        y = net.linear(f"{scope}.{word}", x, 4, 4)
        y = net.run("Mul", scope, net.run("Relu", scope, y), y)
        x = net.run("Add", f"blocks.{index}", y, net.weight(f"{scope}.scale", 4))
        net.nodes[-1].output[0] = x = f"{word}_{index}"
    y = net.run("Softmax", word, x, axis=-1)
    net.nodes[-1].output[0] = y = f"{word}_out"
    check_import(tmp_path, net.model(x, y), net.feeds())


@pytest.mark.parametrize(
    "word", ["Net", "NetOutput", "Block", "Self", "ops", "math", "list", "class"]
)
def test_extents(tmp_path: Path, word: str) -> None:
    """Symbolic dimensions named like a class, or like a value in the body."""
    net = ScopedNet()
    x = net.input("x", word, 3)
    y = net.linear("blocks.0.fc", x, 3, 3)
    y = net.linear("blocks.1.fc", net.run("Tanh", "blocks.0", y), 3, 3)
    shape = net.run("Shape", "", x)
    zero = net.stored("zero", np.array(0))
    count = net.run("Gather", "", shape, zero, axis=0)
    places = net.run("Range", "", zero, count, net.stored("one", np.array(1)))
    numbers = net.run("Cast", "", places, to=1)
    column = net.run("Unsqueeze", "", numbers, net.stored("axis", np.array([1])))
    total = net.run("Add", "", y, column)
    feeds = [net.feeds(extent) for extent in (1, 4)]
    check_import(tmp_path, net.model(total, numbers), *feeds)


def test_a_stored_array_called_like_a_method(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 3)
    first = x = net.run("Mul", "", x, net.weight("part", 3))
    choice = Random(0).choice  # a loop would have few lines
    for _ in range(160):
        other = net.run(choice(("Sin", "Tanh", "Cos")), "", x)
        x = net.run(choice(("Max", "Min")), "", x, other)
    x = net.run("Add", "", x, first)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "part" in actual.keys
    assert re.search(r"    def part\d\(", actual.source)


def test_a_stored_array_that_is_called_like_a_method_by_its_use(tmp_path: Path) -> None:
    """``boxes``, an operand of NonMaxSuppression, is also a method of modules."""
    net = ScopedNet("someone")
    boxes = np.random.default_rng(2).uniform(size=(1, 9, 4)).astype(np.float32)
    stored = net.stored("onnx::1", boxes)
    scores = net.run("Sigmoid", "", net.input("x", 1, 1, 9))
    most = net.stored("onnx::2", np.array([3]))
    kept = net.run("NonMaxSuppression", "", stored, scores, most)
    y = net.run("Cast", "", kept, to=1)
    actual = check_import(tmp_path, net.model(y), net.feeds())
    assert "boxes_" in actual.keys


@pytest.mark.parametrize("noun", ["i", "a", "var", "block", "bias"])
def test_what_several_are_called(noun: str) -> None:
    word = plural(noun)
    assert word.isidentifier() and word not in FORBIDDEN
    assert not keyword.iskeyword(word) and not hasattr(builtins, word)
