"""Inputs and outputs in pytrees: tuples, dictionaries and the like."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torch_export import read
from burn_import.frontends.torch_export.pytrees import leaf_names
from burn_ir import InvalidModel, ModelError, UnsupportedModel
from tests.importer.exported_files import (
    LEAF,
    call,
    linear_program,
    meta,
    program,
    ref,
    saved,
    tree,
    with_trees,
)

PAIR = tree("builtins.tuple", None, LEAF, LEAF)
FIELDS = {"pkg.Point": {"field_names": ["first", "count"]}}
X = np.array([1.0, -2.0], np.float32)


@pytest.mark.parametrize(
    ("of", "names"),
    [
        (LEAF, [""]),
        (PAIR, ["", ""]),
        (tree("builtins.list", None, PAIR, LEAF), ["", "", ""]),
        (tree("torch.Size", None, LEAF), [""]),
        (tree("collections.deque", None, LEAF), [""]),
        (tree("builtins.dict", ["logits", "pair"], LEAF, PAIR), "logits pair_0 pair_1"),
        (
            tree("builtins.tuple", None, LEAF, tree("builtins.dict", ["a"], LEAF)),
            " 1_a",
        ),
        (tree("builtins.dict", [0, "a"], LEAF, LEAF), " a"),
        (tree("collections.OrderedDict", ["b", "a"], LEAF, LEAF), "b a"),
        (tree("collections.namedtuple", "pkg.Point", LEAF, LEAF), "first count"),
        (tree("pkg.Out", [["logits", "loss"], ["extra"]], LEAF, LEAF), "logits loss"),
        (tree("transformers.Output", ["logits"], LEAF), "logits"),
    ],
)
def test_leaves_are_called_after_the_keys_on_the_way(of: Any, names: Any) -> None:
    expected = names.split(" ") if isinstance(names, str) else names
    assert leaf_names(json.dumps([1, of]), FIELDS) == expected


def test_a_dictionary_with_a_default() -> None:
    context = {"default_factory_name": "list", "dict_context": ["a"]}
    of = {
        "type": "collections.defaultdict",
        "context": context,
        "children_spec": [LEAF],
    }
    assert leaf_names(json.dumps([1, of]), {}) == ["a"]


@pytest.mark.parametrize(
    ("of", "error", "message"),
    [
        (tree("pkg.Odd", None, LEAF), UnsupportedModel, r"got 'pkg\.Odd'"),
        (tree("pkg.Odd", ["a", "b"], LEAF), UnsupportedModel, r"got 'pkg\.Odd'"),
        (tree("pkg.Odd", "[[", LEAF), UnsupportedModel, r"got 'pkg\.Odd'"),
        (tree("builtins.dict", ["a", "b"], LEAF), InvalidModel, "expected 2 items"),
        (tree("builtins.dict", [["a"]], LEAF), UnsupportedModel, "dict"),
        (tree("collections.namedtuple", "pkg.No", LEAF), InvalidModel, "fields of"),
        ({"type": None}, InvalidModel, "children_spec"),
        (3, InvalidModel, "tree"),
        ({"type": ["x"], "children_spec": [LEAF]}, InvalidModel, "expected str"),
    ],
)
def test_other_containers_are_refused(of: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        leaf_names(json.dumps([1, of]), FIELDS)


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", "[2, {}]", "[" * 100_000])
def test_what_is_no_tree_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        leaf_names(text, {})


def test_a_tree_that_is_too_deep_is_refused() -> None:
    deep: Any = LEAF
    for _ in range(100):
        deep = tree("builtins.list", None, deep)
    with pytest.raises(InvalidModel, match="at most 64 nested containers"):
        leaf_names(json.dumps([1, deep]), {})


def returning(arguments: list[Any], **trees: Any) -> dict[str, Any]:
    """Return a program that returns these arguments; ``y`` is twice ``x``."""
    two = meta("float32", [2])
    nodes = [call("aten.mul.Tensor", "y", self=ref("x"), other={"as_int": 2})]
    content = program({"x": two}, {}, nodes, {"y": two}, ["y"])
    specs = [{"user_output": {"arg": argument}} for argument in arguments]
    content["graph_module"]["signature"]["output_specs"] = specs
    return with_trees(content, **trees)


def test_keys_are_the_names_of_what_is_returned(tmp_path: Path) -> None:
    numbers = [{"as_int": 3}, {"as_float": 0.5}, {"as_bool": True}]
    arguments = [ref("y"), {"as_none": True}, *numbers, ref("x"), ref("y")]
    keys = ["logits", "nothing", "number", "scale", "flag", "x", "sum"]
    out = tree("builtins.dict", keys, *[LEAF] * 7)
    model: Any = load(saved(tmp_path, returning(arguments, out_spec=out), {}))
    actual = model(burn.tensor(X))
    assert actual._fields == ("logits", "number", "scale", "flag", "x_2", "sum_")
    assert [value.dtype for value in actual[1:4]] == ["int64", "float32", "bool"]
    assert [float(value.numpy()) for value in actual[1:4]] == [3, 0.5, 1]
    np.testing.assert_array_equal(actual.logits.numpy(), 2 * X)
    np.testing.assert_array_equal(actual[4].numpy(), X)
    np.testing.assert_array_equal(actual[5].numpy(), 2 * X)


def test_one_result_of_a_dictionary_is_a_tensor(tmp_path: Path) -> None:
    out = tree("builtins.dict", ["logits"], LEAF)
    model: Any = load(saved(tmp_path, returning([ref("y")], out_spec=out), {}))
    np.testing.assert_array_equal(model(burn.tensor(X)).numpy(), 2 * X)


def test_numbers_without_a_name_are_returned(tmp_path: Path) -> None:
    arguments = [ref("y"), {"as_int": 3}, {"as_string": "text"}]
    model: Any = load(saved(tmp_path, returning(arguments), {}))
    y, number = model(burn.tensor(X))
    assert int(number.numpy()) == 3


def test_a_computed_number_is_returned(tmp_path: Path) -> None:
    rows = meta("float32", ["s7", 2])
    size = {
        "target": "torch.ops.aten.sym_size.int",
        "inputs": [
            {"name": "self", "arg": ref("x"), "kind": 1},
            {"name": "dim", "arg": {"as_int": 0}, "kind": 1},
        ],
        "outputs": [{"as_sym_int": {"as_name": "rows"}}],
        "metadata": {},
        "name": "rows",
    }
    content = program({"x": rows}, {}, [size], {}, [])
    graph = content["graph_module"]["graph"]
    graph["sym_int_values"] = {"rows": rows["sizes"][0]}
    spec = {"user_output": {"arg": {"as_sym_int": {"as_name": "rows"}}}}
    content["graph_module"]["signature"]["output_specs"] = [spec]
    model: Any = load(saved(tmp_path, content, {}))
    for count in (2, 5):
        x = burn.tensor(np.zeros((count, 2), np.float32))
        assert int(model(x).numpy()) == count


def test_numbers_that_were_given_are_fixed(tmp_path: Path) -> None:
    content = returning([ref("y")])
    specs = content["graph_module"]["signature"]["input_specs"]
    specs.append({"constant_input": {"name": "k", "value": {"as_int": 2}}})
    keywords = tree("builtins.dict", ["k"], LEAF)
    given = tree("builtins.tuple", None, LEAF)
    with_trees(content, in_spec=tree("builtins.tuple", None, given, keywords))
    model: Any = load(saved(tmp_path, content, {}))
    np.testing.assert_array_equal(model(x=burn.tensor(X)).numpy(), 2 * X)


def test_a_number_that_varies_is_refused(tmp_path: Path) -> None:
    content = returning([ref("y")])
    specs = content["graph_module"]["signature"]["input_specs"]
    specs.append({"user_input": {"arg": {"as_sym_int": {"as_name": "k"}}}})
    with pytest.raises(UnsupportedModel, match=r"net\.pt2: input 'k': .*a number that"):
        read(saved(tmp_path, content, {}))


def test_the_file_and_the_kind_of_a_container_are_named(tmp_path: Path) -> None:
    content, weights = linear_program()
    with_trees(content, out_spec=tree("pkg.Odd", None, LEAF))
    with pytest.raises(UnsupportedModel, match=r"net\.pt2: .*, got 'pkg\.Odd'"):
        read(saved(tmp_path, content, weights))


@pytest.mark.parametrize("name", ["in_spec", "out_spec"])
def test_a_tree_of_other_leaves_is_refused(tmp_path: Path, name: str) -> None:
    content, weights = linear_program()
    with_trees(content, **{name: PAIR})
    with pytest.raises(InvalidModel, match=r"net\.pt2: expected 2 (in|out)puts, got 1"):
        read(saved(tmp_path, content, weights))
