"""Reading ONNX files: graphs, attributes, functions, names."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, strategies as st
from onnx import AttributeProto, TensorProto, helper

from burn_import.frontends.onnx import read
from burn_import.frontends.onnx.dims import DimNames
from burn_import.frontends.onnx.functions import NODES, NODES_PER_NODE
from burn_import.frontends.onnx.scopes import scope_of
from burn_ir import (
    InvalidModel,
    ModelError,
    RawGraph,
    Type,
    UnreadableFile,
    UnsupportedModel,
    build,
)
from burn_ir.dim import symbol
from tests.importer.onnx_files import graph, model, saved, stored
from tests.pace import within

RELU = helper.make_node("Relu", ["x"], ["y"], name="act")


def test_a_graph_is_read_as_written(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Clip", ["h", "", "top"], ["y"], name="/net/layer.0/Clip"),
        helper.make_node("Dropout", ["x"], ["h", ""], "", domain="ai.onnx", seed=3),
    ]
    proto = model(graph(nodes, initializers=(stored("top", np.float32(2)),)), 13)
    proto.producer_name, proto.producer_version = "maker", "1.2"
    raw = read(saved(tmp_path / "net.onnx", proto))
    clip, dropout = raw.graph.nodes
    assert clip.inputs == ("h", None, "top") and clip.scope == ("net", "layer", "0")
    assert (dropout.domain, dropout.outputs) == ("", ("h", None))
    assert dropout.attrs == {"seed": 3}
    assert raw.opsets == {"": 13} and raw.producer == "maker 1.2"
    assert raw.graph.inputs["x"].name == "float32[2, 3]"
    assert raw.graph.constants["top"] == 2


def test_attributes_of_every_type(tmp_path: Path) -> None:
    tensor = stored("t", np.arange(6, dtype=np.int16).reshape(2, 3))
    body = graph([helper.make_node("Neg", ["x"], ["z"])], {}, ("z",))
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    values: dict[str, Any] = {"f": 0.1, "i": -(2**40), "s": "h\u00e9", "tp": kind}
    values |= {"t": tensor, "g": body, "fs": [1.5, 2.5], "is": [1, 2]}
    values |= {"ss": ["a", "b"], "ts": [tensor, tensor]}
    node = helper.make_node("Custom", ["x"], ["y"], domain="c", **values)
    attrs = read(saved(tmp_path / "m.onnx", model(graph([node])))).graph.nodes[0].attrs
    assert attrs["f"] == 0.1 and attrs["i"] == -(2**40)
    assert (attrs["s"], attrs["ss"], attrs["is"]) == ("h\u00e9", ("a", "b"), (1, 2))
    assert attrs["fs"] == (1.5, 2.5) and attrs["tp"] == Type(np.dtype("float32"), (2,))
    np.testing.assert_array_equal(attrs["ts"][1], np.arange(6).reshape(2, 3))
    assert isinstance(attrs["g"], RawGraph) and attrs["g"].nodes[0].op_type == "Neg"


def test_attributes_without_a_type_are_what_the_operator_declares(
    tmp_path: Path,
) -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1], group=1)
    conv.attribute.append(AttributeProto(name="strides"))
    custom = helper.make_node("Mine", ["x"], ["z"], domain="c", level=2.5)
    for node in (conv, custom):
        for attr in node.attribute:
            attr.ClearField("type")
    nodes = read(saved(tmp_path / "m.onnx", model(graph([conv, custom])))).graph.nodes
    assert nodes[0].attrs == {"pads": (1, 1), "group": 1, "strides": ()}
    assert nodes[1].attrs == {"level": 2.5}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("value_float", 0.5, np.float32(0.5)),
        ("value_floats", [0.5, 2], np.array([0.5, 2], np.float32)),
        ("value_int", 7, np.int64(7)),
        ("value_ints", [7, -8, 9], np.array([7, -8, 9])),
        ("value_string", "a", np.array("a", object)),
        ("value_strings", ["a", "b"], np.array(["a", "b"], object)),
    ],
)
def test_constants_become_arrays(
    tmp_path: Path, key: str, value: Any, expected: Any
) -> None:
    node = helper.make_node("Constant", [], ["y"], **{key: value})
    raw = read(saved(tmp_path / "m.onnx", model(graph([node], {}))))
    assert set(raw.graph.nodes[0].attrs) == {"value"}
    actual = raw.graph.nodes[0].attrs["value"]
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("ir_version", [3, 4])
def test_initializers_among_the_inputs(tmp_path: Path, ir_version: int) -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    weight = stored("w", np.array([1, 2, 3], np.float32))
    proto = model(graph(nodes, {"x": [2, 3], "w": [3]}, initializers=(weight,)))
    proto.ir_version = ir_version
    raw = read(saved(tmp_path / "m.onnx", proto)).graph
    assert list(raw.inputs) == (["x"] if ir_version < 4 else ["x", "w"])
    assert list(raw.constants) == (["w"] if ir_version < 4 else [])
    assert list(raw.defaults) == ([] if ir_version < 4 else ["w"])


def test_no_opset_means_the_first(tmp_path: Path) -> None:
    proto = model(graph([RELU]))
    del proto.opset_import[:]
    assert read(saved(tmp_path / "m.onnx", proto)).opsets == {"": 1}


def test_two_versions_of_a_domain_are_refused(tmp_path: Path) -> None:
    proto = model(graph([RELU]))
    proto.opset_import.append(helper.make_opsetid("ai.onnx", 12))
    with pytest.raises(InvalidModel, match="one version of domain ''"):
        read(saved(tmp_path / "m.onnx", proto))


def test_extents_of_inputs(tmp_path: Path) -> None:
    shapes: dict[str, Any] = {
        "a": ["batch", "past + seq", 4],
        "b": ["", None, "seq"],
        "c": ["class", "a b", "a_b", "Max(1, s0)", "2 * (s // 3)"],
        "d": ["a b", -1],
        "e": ["None", 3, "?", "?"],
    }
    proto = model(graph([RELU], shapes))
    inputs = read(saved(tmp_path / "m.onnx", proto)).graph.inputs
    assert inputs["a"].dims == (*(symbol("batch"), symbol("past") + symbol("seq"), 4),)
    assert [str(dim) for dim in inputs["b"].dims] == ["batch_2", "length", "seq"]
    names = [str(dim) for dim in inputs["c"].dims]
    assert names == ["class_", "a_b_2", "a_b", "Max_1_s0", "2 * (s // 3)"]
    assert [str(dim) for dim in inputs["d"].dims] == ["a_b_2", "length_2"]
    unequal = ["batch_3", "3", "height", "width"]
    assert [str(dim) for dim in inputs["e"].dims] == unequal


@pytest.mark.parametrize("text", ["s // 0", "1 - 2", "a +", "(a", "a b", "(" * 99, "+"])
def test_what_is_no_dimension_becomes_a_symbol(text: str) -> None:
    dim = DimNames().named(text)
    assert str(dim).isidentifier()


def scaled(name: str = "Scaled", **fields: Any) -> onnx.FunctionProto:
    """Return a function y = act(x * factor + shift) with an attribute and a default."""
    factor = helper.make_node("Constant", [], ["factor"])
    factor.attribute.append(
        AttributeProto(
            name="value_float", ref_attr_name="factor", type=AttributeProto.FLOAT
        )
    )
    nodes = [
        factor,
        helper.make_node("Mul", ["x", "factor"], ["h"], name="mul"),
        helper.make_node("Add", ["h", "shift"], ["y"], name="add"),
    ]
    default = helper.make_attribute("factor", 3.0)
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_function(
        "mine", name, ["x", "shift"], ["y"], nodes, opsets, [], [default]
    )
    for key, value in fields.items():
        setattr(proto, key, value)
    return proto


def with_functions(
    nodes: list[onnx.NodeProto], functions: list[onnx.FunctionProto], **more: Any
) -> onnx.ModelProto:
    """Return a model with functions."""
    proto = model(graph(nodes, **more), functions=functions)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    return proto


def test_functions_are_inlined(tmp_path: Path) -> None:
    outer = helper.make_function(
        *("mine", "Twice", ["x"], ["y", "same"]),
        [
            helper.make_node("Scaled", ["x", "x"], ["h"], "first", domain="mine"),
            helper.make_node("Scaled", ["h", "x"], ["y"], "second", domain="mine"),
            helper.make_node("Identity", ["x"], ["unused"]),
        ],
        [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
    )
    outer.output[1] = "x"
    outer.node[1].attribute.append(helper.make_attribute("factor", 5.0))
    call = helper.make_node("Twice", ["x"], ["y", "z"], "/enc/call", domain="mine")
    proto = with_functions([call], [scaled(), outer], outputs=("y", "z"))
    raw = read(saved(tmp_path / "m.onnx", proto))
    nodes = raw.graph.nodes
    values = [n.attrs["value"] for n in nodes if n.op_type == "Constant"]
    assert [float(v) for v in values] == [3.0, 5.0]
    names = [name for node in nodes for name in node.outputs]
    assert len(set(names)) == len(names) and names[-2:] != names[-1:]
    first_add = next(n for n in nodes if n.op_type == "Add")
    assert first_add.scope == ("enc", "call", "first")
    assert first_add.classes == ("", "def Twice", "def Scaled")
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    actual = run(proto, raw, x)
    np.testing.assert_allclose(actual[0], (x * 3 + x) * 5 + x, rtol=1e-6)
    np.testing.assert_array_equal(actual[1], x)


def run(proto: onnx.ModelProto, raw: Any, x: Any) -> list[Any]:
    """Return the results of the operators of ``raw``."""
    values = {"x": x, **raw.graph.constants}
    functions: dict[str, Any] = {"Mul": np.multiply, "Add": np.add}
    for node in raw.graph.nodes:
        if node.op_type == "Constant":
            result = node.attrs["value"]
        elif node.op_type == "Identity":
            result = values[node.inputs[0]]
        else:
            result = functions[node.op_type](*(values[n] for n in node.inputs))
        values[node.outputs[0]] = result
    return [values[name] for name in raw.graph.outputs]


def test_names_inside_a_function_do_not_meet_the_models(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Scaled", ["x", "x"], ["h"], "c", domain="mine"),
        helper.make_node("Relu", ["h"], ["c/h"]),
        helper.make_node("Neg", ["c/h"], ["y"]),
    ]
    raw = read(saved(tmp_path / "m.onnx", with_functions(nodes, [scaled()])))
    outputs = [name for node in raw.graph.nodes for name in node.outputs]
    assert len(set(outputs)) == len(outputs) == 5


def test_overloads_and_bodies_in_functions(tmp_path: Path) -> None:
    branch = graph([helper.make_node("Neg", ["x"], ["t"])], {}, ("t",))
    other = graph([helper.make_node("Abs", ["x"], ["t"])], {}, ("t",))
    choose = helper.make_node(
        "If", ["flag"], ["y"], then_branch=branch, else_branch=other
    )
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function(
        "mine", "Scaled", ["x", "flag"], ["y"], [choose], opsets, overload="if"
    )
    call = helper.make_node("Scaled", ["v", "b"], ["y"], "c", domain="mine")
    call.overload = "if"
    proto = with_functions([call], [scaled(), function], inputs={"v": [2], "b": []})
    (node,) = read(saved(tmp_path / "m.onnx", proto)).graph.nodes
    assert node.op_type == "If" and node.inputs == ("b",)
    inner = node.attrs["then_branch"], node.attrs["else_branch"]
    assert [body.nodes[0].inputs for body in inner] == [("v",), ("v",)]
    assert inner[0].outputs == inner[0].nodes[0].outputs != inner[1].outputs


def test_a_function_that_calls_itself(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    node = helper.make_node("F", ["x"], ["y"], domain="mine")
    function = helper.make_function("mine", "F", ["x"], ["y"], [node], opsets)
    with pytest.raises(InvalidModel, match="'F' calls itself"):
        read(saved(tmp_path / "m.onnx", with_functions([node], [function])))


def test_functions_that_become_too_many_nodes(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    functions = []
    for level in range(30):
        name = "Relu" if level == 0 else f"F{level - 1}"
        domain = "" if level == 0 else "mine"
        nodes = [
            helper.make_node(name, ["x"], ["h"], domain=domain),
            helper.make_node(name, ["h"], ["y"], domain=domain),
        ]
        functions.append(
            helper.make_function("mine", f"F{level}", ["x"], ["y"], nodes, opsets)
        )
    call = helper.make_node("F29", ["x"], ["y"], domain="mine")
    path = saved(tmp_path / "m.onnx", with_functions([call], functions))
    most = NODES + 61 * NODES_PER_NODE
    refused = pytest.raises(UnsupportedModel, match=f"at most {most} nodes")
    with within(0.5), refused:  # counted before they are inlined
        read(path)


def test_a_function_of_another_opset(tmp_path: Path) -> None:
    function = helper.make_function(
        *("mine", "F", ["x"], ["y"], [helper.make_node("Softmax", ["x"], ["y"])]),
        [helper.make_opsetid("", 12)],
    )
    call = helper.make_node("F", ["x"], ["y"], domain="mine")
    path = saved(tmp_path / "m.onnx", with_functions([call], [function]))
    with pytest.raises(UnsupportedModel, match="opset 17, got one of opset 12"):
        read(path)
    function.node[0].op_type = "Sigmoid"  # the same since 13; since 6 before
    function.opset_import[0].version = 16
    read(saved(path, with_functions([call], [function])))


@pytest.mark.parametrize(
    ("scopes", "classes", "expected"),
    [
        (["", "e", "e.layer.0", "add"], ["m.Net", "m.E", "L", "aten"],
         (("e", "layer", "0"), ("E", "", "L"))),
        (["", "add"], ["m.Net", "aten"], (("",), ())),
        (["hook", "size"], ["hook", "aten"], ((), ())),
        (["", "e", "add"], [], (("e",), ())),
        (["", "e", "e.__dict__['_modules']['layer'].0", "add"],
         ["m.Net", "m.E", "L", "aten"], (("e", "layer", "0"), ("E", "", "L"))),
        (["", "e._modules['fc']", "add"], [], (("e", "fc"), ())),
    ],
)  # fmt: skip
def test_scopes_of_torch(scopes: list[str], classes: list[str], expected: Any) -> None:
    metadata = {
        "pkg.torch.onnx.name_scopes": repr(scopes),
        "pkg.torch.onnx.class_hierarchy": repr(classes),
    }
    assert scope_of("node_add", metadata) == expected


@pytest.mark.parametrize("text", ["[", "[1]", "['a'", "__import__('os')", "[" * 5000])
def test_scopes_that_are_none(text: str) -> None:
    assert scope_of("n", {"pkg.torch.onnx.name_scopes": text}) == ((), ())


def test_all_problems_are_listed(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="first"),
        helper.make_node("Relu", ["x"], ["z"], name="second"),
    ]
    for node in nodes:
        node.attribute.append(AttributeProto(name="a", s=b"\xff", type="STRING"))
    with pytest.raises(InvalidModel) as caught:
        read(saved(tmp_path / "m.onnx", model(graph(nodes))))
    assert [name in str(caught.value) for name in ("first", "second")] == [True] * 2
    assert len(caught.value.problems) == 2


def test_names_that_are_no_text(tmp_path: Path) -> None:
    data = model(graph([RELU])).SerializeToString().replace(b"act", b"a\xfft")
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(InvalidModel, match="names in UTF-8"):
        read(tmp_path / "m.onnx")


def test_unsorted_graphs_build(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Neg", ["h"], ["y"]),
        helper.make_node("Abs", ["x"], ["h"]),
    ]
    built = build(read(saved(tmp_path / "m.onnx", model(graph(nodes)))))
    assert [node.op.onnx for node in built.nodes] == ["Abs", "Neg"]


@pytest.mark.parametrize(("depth", "fits"), [(25, True), (33, False)])
def test_nested_bodies(tmp_path: Path, depth: int, fits: bool) -> None:
    body = graph([helper.make_node("Neg", ["x"], ["t"])], {}, ("t",))
    for _ in range(depth - 2):
        node = helper.make_node("If", ["c"], ["t"], then_branch=body)
        body = graph([node], {}, ("t",))
    node = helper.make_node("If", ["c"], ["y"], then_branch=body)
    path = saved(tmp_path / "m.onnx", model(graph([node], {"x": [2], "c": []})))
    if fits:
        assert read(path).graph.nodes[0].op_type == "If"
    else:
        with pytest.raises(UnreadableFile, match="nested at most 32"):
            read(path)


SAMPLE = with_functions(
    [
        helper.make_node("Scaled", ["x", "w"], ["h"], "c", domain="mine"),
        helper.make_node("Concat", ["h", "h"], ["y"], axis=1),
    ],
    [scaled()],
    inputs={"x": ["batch", 3]},
    initializers=(stored("w", np.arange(12, dtype=np.float32).reshape(4, 3)),),
).SerializeToString()


@given(
    st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255))),
    st.integers(0, 40),
)
def test_damaged_files_raise_only_errors_of_models(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(SAMPLE)
    for index, byte in edits:
        data[index] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    path.write_bytes(data[: len(data) - cut])
    try:
        raw = read(path)
    except ModelError:
        return
    assert all(isinstance(name, str) for name in raw.graph.outputs)
