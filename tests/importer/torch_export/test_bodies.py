"""Subgraphs of context managers such as ``no_grad``: results, numbers, changes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_ir import UnsupportedModel
from tests.importer.exported_files import call, expression, meta, program, ref, saved

HALF = "Symbol('s', positive=True, integer=True)"
WHOLE = f"Mul(Integer(2), {HALF})"


def number(name: str) -> dict[str, Any]:
    return {"as_sym_int": {"as_name": name}}


def rows(text: str) -> dict[str, Any]:
    typed = meta("float32", ["s", 4])
    typed["sizes"][0] = expression(text)
    return typed


def computed(target: str, result: str, *args: Any) -> dict[str, Any]:
    """Return a call of a Python function, whose result is a number."""
    output = call("", result, **{f"a{i}": arg for i, arg in enumerate(args)})
    inputs = [{**arg, "name": ""} for arg in output["inputs"]]
    return {**output, "target": target, "inputs": inputs, "outputs": [number(result)]}


def body() -> dict[str, Any]:
    """Return a graph that halves x, adds to it in place, and returns numbers."""
    halves = call(
        "aten.split_with_sizes.default",
        "parts",
        self=ref("x"),
        split_sizes={"as_sym_ints": [{"as_name": "half"}, {"as_name": "half"}]},
    )
    halves["outputs"] = [{"as_tensors": [{"name": "first"}, {"name": "second"}]}]
    size = call("aten.sym_size.int", "size", self=ref("x"), dim={"as_int": 0})
    nodes = [
        {**size, "outputs": [number("size")]},
        computed("_operator.floordiv", "half", number("size"), {"as_int": 2}),
        halves,
        call("aten.add_.Tensor", "z_1", self=ref("z"), other={"as_int": 1}),
    ]
    parts = {name: rows(HALF) for name in ("first", "second")}
    numbers = {"size": expression(WHOLE), "half": expression(HALF)}
    results = [number("half"), {"as_none": True}, {"as_int": 3}, ref("second")]
    return {
        "inputs": [ref("x"), ref("z")],
        "outputs": results,
        "nodes": nodes,
        "tensor_values": {**parts, **{n: rows(WHOLE) for n in ("x", "z", "z_1")}},
        "sym_int_values": numbers,
        "sym_float_values": {},
        "sym_bool_values": {},
    }


def marked(target: str, *first: Any) -> dict[str, Any]:
    """Return a program that calls the subgraph by an operator, and adds its results."""
    inside = {"as_graph": {"name": "submod", "graph": body()}}
    given = [*first, inside, ref("x"), ref("z")]
    wrapped = call(target, "wrapped", **{f"a{i}": a for i, a in enumerate(given)})
    wrapped["inputs"] = [{**arg, "name": ""} for arg in wrapped["inputs"]]
    outs = [number("n"), {"as_none": True}, number("three"), ref("tail")]
    wrapped["outputs"] = outs
    nodes = [
        call("aten.mul.Tensor", "z", self=ref("x"), other={"as_int": 1}),
        wrapped,
        call("aten.add.Tensor", "more", self=ref("z"), other=number("three")),
        call("aten.slice.Tensor", "head", self=ref("more"), end=number("n")),
        call("aten.add.Tensor", "y", self=ref("head"), other=ref("tail")),
    ]
    values = {name: rows(WHOLE) for name in ("z", "more")}
    values |= {name: rows(HALF) for name in ("tail", "head", "y")}
    content = program({"x": rows(WHOLE)}, {}, nodes, values, ["y"])
    numbers = {"n": expression(HALF), "three": {"as_int": 3}}
    content["graph_module"]["graph"]["sym_int_values"] = numbers
    return content


@pytest.mark.parametrize(
    ("target", "first"),
    [
        ("wrap_with_set_grad_enabled", [{"as_bool": False}]),
        (
            "wrap_with_autocast",
            [{"as_string": "cpu"}, {"as_none": True}, {"as_bool": False}]
            + [{"as_none": True}],
        ),
    ],
)
def test_a_marked_graph_returns_numbers_and_changes_its_operands(
    target: str, first: list[Any], tmp_path: Path
) -> None:
    content = marked(f"higher_order.{target}", *first)
    model: Any = load(saved(tmp_path, content, {}))
    for count in (6, 2):
        x = np.random.default_rng(count).standard_normal((count, 4), np.float32)
        actual = model(burn.tensor(x)).numpy()
        half = count // 2
        np.testing.assert_allclose(actual, x[:half] + 1 + 3 + x[half:], rtol=1e-6)


def test_a_change_in_place_within_a_branch_is_refused(tmp_path: Path) -> None:
    content = marked("higher_order.cond")
    nodes = content["graph_module"]["graph"]["nodes"]
    graph = {"as_graph": {"name": "submod", "graph": body()}}
    operands = {"as_tensors": [{"name": "x"}, {"name": "z"}]}
    args = [{"as_bool": True}, graph, graph, operands]
    nodes[1]["inputs"] = [{"name": "", "arg": arg, "kind": 1} for arg in args]
    with pytest.raises(UnsupportedModel, match="changes an operand in place"):
        load(saved(tmp_path, content, {}))


def test_a_graph_inside_returns_no_text(tmp_path: Path) -> None:
    content = marked("higher_order.wrap_with_set_grad_enabled", {"as_bool": False})
    wrapped = content["graph_module"]["graph"]["nodes"][1]
    inside = wrapped["inputs"][1]["arg"]["as_graph"]["graph"]
    inside["outputs"][1] = {"as_string": "text"}
    with pytest.raises(UnsupportedModel, match="tensors and numbers, got 'text'"):
        load(saved(tmp_path, content, {}))
