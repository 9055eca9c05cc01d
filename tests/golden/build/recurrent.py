"""A golden model with recurrent layers as an exporter writes them."""

from typing import Any

from onnx import helper

from tests.golden.build.case import Build, Case, model

HIDDEN = 4
TARGETS = 3


def recurrent() -> Case:
    """Two layers of a GRU read a series; a cell of an LSTM goes on for three steps."""
    b = Build(6)
    last = encoder(b)
    c = b.op("Tanh", [last], "carry", name="/Tanh")
    h, x = last, "start"
    cell = [
        b.weight("decoder.cell.weight_ih", 4 * HIDDEN, TARGETS),
        b.weight("decoder.cell.weight_hh", 4 * HIDDEN, HIDDEN),
        b.weight("decoder.cell.bias_ih", 4 * HIDDEN),
        b.weight("decoder.cell.bias_hh", 4 * HIDDEN),
    ]
    out = [
        b.weight("decoder.out.weight", TARGETS, HIDDEN),
        b.weight("decoder.out.bias", TARGETS),
    ]
    steps = []
    one = b.stored("one", [1])
    for k in range(3):
        h, c = step(b, f"/decoder/cell{f'_{k}' if k else ''}", x, h, c, cell)
        name = f"/decoder/out{f'_{k}' if k else ''}"
        x = b.op("Gemm", [h, *out], f"{name}/Gemm_output_0", name=name, transB=1)
        unsqueeze = f"/decoder/Unsqueeze_{k}"
        result = f"{unsqueeze}_output_0"
        steps.append(b.op("Unsqueeze", [x, one], result, name=unsqueeze))
    b.op("Concat", steps, "forecast", name="/decoder/Concat", axis=1)
    graph = b.graph(
        "recurrent",
        {"series": ["batch", "time", 2], "start": ["batch", TARGETS]},
        {"forecast": ["batch", 3, TARGETS]},
    )
    feeds = tuple(
        {"series": b.normal(n, t, 2), "start": b.normal(n, TARGETS)}
        for n, t in ((2, 5), (3, 4))
    )
    return Case(model(graph), feeds)


def encoder(b: Build) -> str:
    """The last state of the upper layer."""
    x = b.op(
        "Transpose", ["series"], "steps", name="/encoder/Transpose", perm=[1, 0, 2]
    )
    one, states = b.stored("axis", [1]), []
    for layer, width in enumerate((2, HIDDEN)):
        weights = [
            b.weight(f"onnx::GRU_{layer}1", 1, 3 * HIDDEN, width),
            b.weight(f"onnx::GRU_{layer}2", 1, 3 * HIDDEN, HIDDEN),
            b.weight(f"onnx::GRU_{layer}3", 1, 6 * HIDDEN),
        ]
        outputs = [f"/encoder/GRU_{layer}_output_{position}" for position in (0, 1)]
        options: dict[str, Any] = {"hidden_size": HIDDEN, "linear_before_reset": 1}
        name = f"/encoder/GRU_{layer}"
        b.nodes.append(helper.make_node("GRU", [x, *weights], outputs, name, **options))
        name = f"/encoder/Squeeze_{layer}"
        x = b.op("Squeeze", [outputs[0], one], f"{name}_output_0", name=name)
        states.append(outputs[1])
    name = "/encoder/Concat"
    every = b.op("Concat", states, f"{name}_output_0", name=name, axis=0)
    index = b.stored("upper", 1)
    return b.op("Gather", [every, index], "/Gather_output_0", name="/Gather", axis=0)


def step(
    b: Build, scope: str, x: str, h: str, c: str, cell: list[str]
) -> tuple[str, str]:
    """The states after a step of an LSTM, written out."""
    wi, wh, bi, bh = cell

    def op(kind: str, inputs: list[str], word: str, **attrs: int) -> str:
        name = f"{scope}/{word}"
        return b.op(kind, inputs, f"{name}_output_0", name=name, **attrs)

    a = op("Gemm", [h, wh, bh], "Gemm", transB=1)
    e = op("Gemm", [x, wi, bi], "Gemm_1", transB=1)
    total = op("Add", [a, e], "Add")
    gates = [f"{scope}/Split_output_{index}" for index in range(4)]
    b.nodes.append(
        helper.make_node(
            "Split", [total], gates, f"{scope}/Split", axis=1, num_outputs=4
        )
    )
    i, f = op("Sigmoid", gates[:1], "Sigmoid"), op("Sigmoid", gates[1:2], "Sigmoid_1")
    g, o = op("Tanh", gates[2:3], "Tanh"), op("Sigmoid", gates[3:], "Sigmoid_2")
    keep, new = op("Mul", [f, c], "Mul"), op("Mul", [i, g], "Mul_1")
    c = op("Add", [keep, new], "Add_1")
    return op("Mul", [o, op("Tanh", [c], "Tanh_1")], "Mul_2"), c
