"""Features: one golden model for each thing that is easy to get wrong."""

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from tests.golden.build.case import BOOL, FLOAT, INT64, Build, Case, model


def _branch(name: str, nodes: list[NodeProto], output: str) -> GraphProto:
    value = helper.make_tensor_value_info(output, FLOAT, None)
    return helper.make_graph(nodes, name, [], [value])


def ranks() -> Case:
    """An If whose branches give different ranks: a single row loses its first axis."""
    b = Build(11)
    b.op("Shape", ["x"], "shape")
    b.op("Gather", ["shape", b.stored("first", 0)], "count")
    b.op("Equal", ["count", b.stored("one", 1)], "single")
    axes = b.stored("axes", [0])
    row = helper.make_node("Squeeze", ["x", axes], ["row"], "squeeze")
    same = helper.make_node("Identity", ["x"], ["unchanged"], "same")
    b.op(
        "If",
        ["single"],
        "rows",
        then_branch=_branch("then", [row], "row"),
        else_branch=_branch("otherwise", [same], "unchanged"),
    )
    x = b.op("MatMul", ["rows", b.weight("head.weight", 4, 3)], "product")
    x = b.op("Add", [x, b.weight("head.bias", 3)], "scores")
    b.op("Reshape", [x, b.stored("flat", [-1])], "y")
    graph = b.graph("ranks", {"x": ["n", 4]}, {"y": ["m"]})
    return Case(model(graph), tuple({"x": b.normal(n, 4)} for n in (1, 3)))


def nested_if() -> Case:
    """An If within an If; both read values from outside, and weights."""
    b = Build(12)
    b.op("Relu", ["x"], "positive")
    b.op("ReduceMax", ["x"], "top", keepdims=0)
    b.op("Greater", ["top", b.stored("limit", 1.0)], "high")
    b.op("Greater", ["top", "threshold"], "above")
    scale, shift = b.weight("scale", 4), b.weight("shift", 4)
    scaled = helper.make_node("Mul", ["positive", scale], ["scaled"], "scaled")
    shifted = [
        helper.make_node("Add", ["positive", shift], ["sum"], "sum"),
        helper.make_node("Tanh", ["sum"], ["shifted"], "shifted"),
    ]
    inner = helper.make_node(
        "If",
        ["above"],
        ["chosen"],
        "inner",
        then_branch=_branch("inner_then", [scaled], "scaled"),
        else_branch=_branch("inner_else", shifted, "shifted"),
    )
    again = helper.make_node("Sub", ["chosen", "x"], ["difference"], "difference")
    plain = helper.make_node("Neg", ["x"], ["negative"], "negative")
    b.op(
        "If",
        ["high"],
        "picked",
        then_branch=_branch("outer_then", [inner, again], "difference"),
        else_branch=_branch("outer_else", [plain], "negative"),
    )
    b.op("Add", ["picked", "positive"], "y")
    shape = ("n", 2, 4)
    graph = b.graph("nested", {"x": shape, "threshold": []}, {"y": shape})
    low = {"x": np.minimum(b.normal(2, 2, 4), 0.5), "threshold": np.float32(0)}
    high = {"x": b.normal(3, 2, 4) + np.float32(1), "threshold": np.float32(9)}
    feeds = ({name: np.asarray(x) for name, x in f.items()} for f in (low, high))
    return Case(model(graph), tuple(feeds))


def shapes() -> Case:
    """Shape arithmetic on a symbolic batch; a shape and a flag among the outputs."""
    b = Build(13)
    b.op("Shape", ["x"], "shape")
    b.op("Gather", ["shape", b.stored("first", 0)], "n")
    b.op("Gather", ["shape", b.stored("second", 1)], "t")
    b.op("Mul", ["n", "t"], "rows")
    b.op("Unsqueeze", ["rows", b.stored("zero", [0])], "rows1")
    b.op("Concat", ["rows1", b.stored("rest", [2, -1])], "target", axis=0)
    b.op("Reshape", ["x", "target"], "pairs")
    b.op("ReduceMean", ["pairs", b.stored("last", [-1])], "means", keepdims=0)
    b.op("Div", ["rows", b.stored("two", 2)], "half")
    b.op("Cast", ["half"], "count", to=TensorProto.FLOAT)
    b.op("Div", ["means", "count"], "scaled")
    b.op("ReduceMax", ["scaled"], "top", keepdims=0)
    b.op("Greater", ["top", b.stored("limit", 0.1)], "exceeds")
    graph = b.graph(
        "shapes",
        {"x": ["batch", "time", 6]},
        {"scaled": ["rows", 2], "target": [3], "half": [], "exceeds": []},
        {"target": INT64, "half": INT64, "exceeds": BOOL},
    )
    feeds = tuple({"x": b.normal(*size, 6)} for size in ((2, 3), (5, 7)))
    return Case(model(graph), feeds)


def padding() -> Case:
    """Asymmetric pads, and SAME_UPPER on an image of any size."""
    b = Build(14)
    x = b.op(
        "Conv",
        ["image", b.weight("first.weight", 4, 2, 3, 2), b.weight("first.bias", 4)],
        "first",
        pads=[0, 1, 2, 0],
        strides=[1, 2],
    )
    x = b.op("Relu", [x], "relu")
    x = b.op(
        "Conv",
        [x, b.weight("second.weight", 4, 2, 3, 3), b.weight("second.bias", 4)],
        "second",
        auto_pad="SAME_UPPER",
        group=2,
        strides=[2, 1],
    )
    x = b.op("LeakyRelu", [x], "leaky", alpha=0.1)
    b.op(
        "MaxPool",
        [x],
        "pooled",
        kernel_shape=[2, 3],
        pads=[0, 1, 1, 1],
        strides=[1, 2],
        ceil_mode=1,
    )
    graph = b.graph(
        "padding",
        {"image": ["batch", 2, "height", "width"]},
        {"pooled": ["batch", 4, None, None]},
    )
    feeds = tuple({"image": b.normal(*size)} for size in ((1, 2, 9, 11), (2, 2, 8, 14)))
    return Case(model(graph), feeds)


def opset9() -> Case:
    """Opset 9: axes as attributes, and a Softmax over all axes from the second on."""
    b = Build(15)
    x = b.op("Softmax", ["x"], "shares", axis=1)
    x = b.op("Unsqueeze", [x], "wide", axes=[0, 2])
    x = b.op("ReduceSum", [x], "sums", axes=[3], keepdims=0)
    x = b.op("Squeeze", [x], "narrow", axes=[0])
    x = b.op("Slice", [x], "part", axes=[2], starts=[1], ends=[9999])
    x = b.op("Pad", [x], "padded", pads=[0, 0, 1, 0, 0, 0], value=0.5)
    x = b.op("Clip", [x], "clipped", min=0.01, max=0.6)
    b.op("Dropout", [x], "y", ratio=0.5)
    graph = b.graph("opset9", {"x": [2, 3, 4]}, {"y": [2, 1, 4]})
    return Case(model(graph, 9), ({"x": b.normal(2, 3, 4)},))


def optional() -> Case:
    """Several outputs, an unused input, an input that may be left out."""
    b = Build(16)
    gain = b.positive("gain", 3)
    b.op("Mul", ["x", gain], "scaled")
    b.op("TopK", ["scaled", b.stored("k", [2])], "top", axis=-1)
    b.nodes[-1].output.append("places")
    b.op("Not", ["mask"], "hidden")
    graph = b.graph(
        "optional",
        {"x": ["n", 3], "unused": ["m"], "mask": ["n"]},
        {"top": ["n", 2], "places": ["n", 2], "hidden": ["n"], "scaled": ["n", 3]},
        {"places": INT64, "mask": BOOL, "hidden": BOOL},
        {"gain": [3]},
    )
    first = {"x": b.normal(4, 3), "unused": b.normal(1), "mask": b.normal(4) > 0}
    second = {
        "x": b.normal(2, 3),
        "unused": b.normal(5),
        "mask": b.normal(2) > 0,
        "gain": b.normal(3),
    }
    return Case(model(graph), (first, second))


def collisions() -> Case:
    """Names that become the same identifier, or one that Python has already."""
    b = Build(17)
    names = (
        *("a.b", "a/b", "a_b", "A.b", "class", "self", "burn", "print", "nn.weight"),
        *("load", "state_dict", "x", "ops", "WEIGHTS", "Tensor"),
    )
    x = "self.x"
    for i, name in enumerate(names):
        weight = b.weight(name, 3)
        x = b.op("Add" if i % 2 else "Mul", [x, weight], f"x_{i}", name=name)
    b.op("Identity", [x], "return")
    graph = b.graph("import", {"self.x": ["def", 3]}, {"return": ["def", 3]})
    feeds = tuple({"self.x": b.normal(n, 3)} for n in (2, 4))
    return Case(model(graph), feeds)


def hostile() -> Case:
    """Names made to break out of a string, a comment, a docstring or an identifier."""
    b = Build(18)
    names = (
        'quote"""\nimport os\n"""',
        "coding: utf-7",
        "\u202eright to left\u202c",
        "line\r\nbreak\x00zero",
        "\\N{BULLET}'{x}",
        "naïve/été",
        "# type: ignore",
        "__class__",
    )
    x = "in\n'put\u2028"
    for i, name in enumerate(names):
        x = b.op("Add", [x, b.weight(name, 3)], f"{name}{i}", name=name)
    b.op("Tanh", [x], 'out"""put')
    graph = b.graph(
        '"""\nraise SystemExit', {"in\n'put\u2028": [2, 3]}, {'out"""put': [2, 3]}
    )
    return Case(model(graph), ({"in\n'put\u2028": b.normal(2, 3)},))
