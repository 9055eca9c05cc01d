"""Unique names, and their assignment to nodes by the builder."""

import numpy as np
import pytest

from burn import dtypes
from burn_ir import GraphBuilder, Origin, RawModel, build
from burn_ir.names import UniqueNames, free_name
from burn_ir.ops.support import ELEMENT_NUMBERS, ELEMENT_TYPES
from burn_ir.raw import RawGraph
from burn_ir.types import Type


def test_names_in_use_get_the_next_free_number() -> None:
    names = UniqueNames(["x_3"])
    assert [names.unique("x") for _ in range(4)] == ["x", "x_2", "x_4", "x_5"]
    assert names.unique("x_2") == "x_2_2"


def test_forgotten_names_are_given_again() -> None:
    names = UniqueNames(["x"])
    kept = len(names.log)
    first = [names.unique("x"), names.unique("y"), names.unique("x")]
    names.forget(kept)
    assert "x" in names
    assert "y" not in names
    assert [names.unique("x"), names.unique("y"), names.unique("x")] == first


def test_free_names_are_in_no_container() -> None:
    assert free_name("x", {"y"}, {"z": 1}) == "x"
    assert free_name("x", {"x"}, {"x_": 1}) == "x__"


def test_bodies_share_names_and_constants() -> None:
    outer = GraphBuilder()
    inner = outer.inner()
    assert outer.store("w", np.ones(2, np.float32)) == "w"
    assert inner.node("Relu", ["w"], ["w"], {}, Origin("call")) == ("w_2",)
    assert inner.constants is outer.constants
    assert outer.nodes == []
    body = inner.body({"x": Type(dtypes.float32, (2,))}, ["w_2"])
    assert [node.name for node in body.nodes] == ["call"]
    assert body.outputs == ("w_2",)


def test_nodes_leave_out_attributes_without_value() -> None:
    builder = GraphBuilder()
    origin = Origin(scope=("layer",), classes=("Layer",))
    names = builder.node("Softmax", ["x"], ["y"], {"axis": None}, origin)
    (node,) = builder.nodes
    assert names == ("y",)
    assert node.attrs == {}
    assert (node.name, node.scope, node.classes) == ("y", ("layer",), ("Layer",))


def test_a_built_graph_is_typed() -> None:
    builder = GraphBuilder()
    two = builder.literal("number", np.array([2.0], np.float32))
    (output,) = builder.node("Mul", ["x", two], ["y"], {}, Origin())
    inputs = {"x": Type(dtypes.float32, (3,))}
    nodes = tuple(builder.nodes)
    graph = build(RawModel(RawGraph("main", inputs, (output,), nodes, {}), {"": 14}))
    assert graph.type(output) == Type(dtypes.float32, (3,))


@pytest.mark.parametrize("number", ELEMENT_TYPES)
def test_each_dtype_has_one_number(number: int) -> None:
    assert ELEMENT_NUMBERS[ELEMENT_TYPES[number]] == number
