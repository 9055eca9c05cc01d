"""Rules of what is not compared: the nodes that they are about, and no others."""

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import helper

from tests.fuzz.errors.discontinuous import jumping_outputs
from tests.fuzz.oracle import Oracle, noise_of_constants
from tests.fuzz.rules.explained import explanation

HALF = np.ones((1, 4, 2), np.float32)
SOFTMAX = [np.zeros((2, 3), np.uint8), np.array(0.1, np.float32), None]
ROW = np.ones(4, np.float32)
TEXTS = np.array([["a", "b"], ["c", "d"]], object)
LAST = np.iinfo(np.int64).max


def length(count: int) -> Any:
    """A scalar operand."""
    return np.array(count)


def scale(value: float) -> Any:
    """A scale."""
    return np.array(value, np.float32)


def grid(value: float) -> Any:
    """A point beside the middle of an image, and one at its corner."""
    return np.array([[[[value, 1], [1, 1]]]], np.float32)


def quantized_twice(first: float, second: float, result: float) -> list[Any]:
    """Operands of a sum of integers with these scales."""
    return [
        *(OCTETS, scale(first), ZERO, OCTETS, scale(second), ZERO),
        *(scale(result), ZERO),
    ]


def leaky(given: float, result: float) -> list[Any]:
    """Operands of a function of integers with these scales."""
    return [OCTETS, scale(given), ZERO, scale(result), ZERO]


MICROSOFT = {"domain": "com.microsoft"}
OCTETS = np.arange(-4, 4, dtype=np.int8)
ZERO = np.array(0, np.int8)
STEPS = np.where(np.arange(256) == 100, 100.5, np.arange(256.0))
SCORES = np.array([[[1 - 1e-6, 1, 0.5]]], np.float32)
IMAGE = np.ones((1, 1, 2, 2), np.float32)
CORNERS = {"align_corners": 1}
SAME, WIDE = {"auto_pad": "SAME_LOWER"}, {"dilations": [2, 2]}
CHANNELS = np.array([[[1e3], [-2.0], [1.0]]], np.float32)
CONSTANT = np.full((1, 1, 3), 7, np.float32)
NORM = [np.ones(1, np.float32), np.zeros(1, np.float32)]
INTEGERS = np.array([-(2**31), 0, -1], np.int32)
CASES: list[tuple[str, list[Any], dict[str, Any], bool]] = [
    ("DFT", [HALF, length(8)], {"inverse": 1, "onesided": 1, "axis": 1}, True),
    ("DFT", [HALF, length(6)], {"inverse": 1, "onesided": 1, "axis": 1}, False),
    ("DFT", [HALF, length(7), length(-2)], {"inverse": 1, "onesided": 1}, False),
    ("DFT", [HALF, length(9), length(-2)], {"inverse": 1, "onesided": 1}, True),
    ("DFT", [HALF, length(8)], {"inverse": 1}, False),
    ("QLinearSoftmax", [*SOFTMAX, scale(1 / 256)], {"opset": 13}, False),
    ("QLinearSoftmax", [*SOFTMAX, scale(0.003)], {"opset": 13}, True),
    ("FusedMatMul", [np.ones((4, 3)), ROW], {"transA": 1}, True),
    ("FusedMatMul", [np.ones((3, 4)), ROW], {}, False),
    ("FusedMatMul", [np.ones((4, 3)), np.ones((4, 1))], {"transA": 1}, False),
    ("ReduceMean", [np.ones((0, 3))], {}, True),
    ("ReduceMean", [np.ones((1, 3))], {}, False),
    ("Unique", [np.array([1, 1 + 1e-6, 2], np.float32)], {}, True),
    ("Unique", [np.array([1, 1, 2], np.float32)], {}, False),
    ("Gather", [TEXTS, length(0)], {}, True),
    ("Gather", [TEXTS, length(0)], {"axis": 1}, False),
    ("Gather", [HALF, length(0)], {}, False),
    ("Gather", [TEXTS[0, 0:1].reshape(()), length(0)], {}, False),
    ("GatherND", [HALF, np.zeros((1, 4), np.int64)], {}, True),
    ("GatherND", [HALF, np.zeros((1, 2), np.int64)], {}, False),
    ("Slice", [ROW, length(-9), length(LAST), None, length(-1)], {}, True),
    ("Slice", [ROW, length(-9), length(LAST), None, length(1)], {}, False),
    ("Slice", [ROW, length(0), length(LAST)], {}, False),
    ("Slice", [ROW, length(-9), length(2**31 - 1), None, length(-1)], {}, True),
    ("Slice", [ROW, length(-9), length(2**31 - 2), None, length(-1)], {}, False),
    ("ArgMax", [np.array([1e-7, 5e-7, -4], np.float32)], {}, True),
    ("ArgMax", [np.array([1e-7, 5e-7, -0.01], np.float32)], {}, False),
    ("NonMaxSuppression", [HALF, np.array([[[1, 1 - 1e-6]]])], {}, False),
    ("NonMaxSuppression", [HALF, SCORES[:, :, :2]], {}, True),
    ("NonMaxSuppression", [HALF, SCORES[:, :, 1:]], {}, False),
    ("NonMaxSuppression", [HALF, SCORES.reshape(1, 3, 1)], {}, False),
    ("GridSample", [IMAGE, grid(1e-7)], {"mode": "nearest", **CORNERS}, True),
    ("GridSample", [IMAGE, grid(1e-7)], {"mode": "nearest"}, True),
    ("GridSample", [IMAGE, grid(0)], {"mode": "nearest", **CORNERS}, False),
    ("GridSample", [IMAGE[..., None], grid(1e-7)], {"mode": "nearest"}, False),
    ("GridSample", [IMAGE, grid(0.01)], {"mode": "nearest", **CORNERS}, False),
    ("GridSample", [IMAGE, grid(1e-7)], {"mode": "linear", **CORNERS}, False),
    ("QuantizeLinear", [ROW, scale(0)], {}, True),
    ("QuantizeLinear", [ROW, scale(1.5e-8)], {}, True),
    ("QuantizeLinear", [ROW, scale(1e-5)], {}, False),
    ("QuantizeLinear", [ROW * 1.2500002, scale(0.5)], {}, True),
    ("QuantizeLinear", [ROW * 1.25, scale(0.5)], {}, False),
    ("QuantizeLinear", [ROW * 1.2501, scale(0.5)], {}, False),
    ("QuantizeLinear", [ROW * 1.2500002, scale(0.5) * ROW], {"axis": 0}, False),
    ("DynamicQuantizeLinear", [STEPS + 1e-6], {}, True),
    ("DynamicQuantizeLinear", [STEPS], {}, False),
    ("DynamicQuantizeLinear", [STEPS + 1e-3], {}, False),
    ("QGemm", [ROW, scale(1), ROW, ROW, scale(1), ROW], {}, False),
    ("QLinearAdd", [*[ROW] * 6, scale(-1e-9)], {}, True),
    ("QLinearAdd", [ROW, scale(0), *[ROW] * 4, scale(0.1)], {}, False),
    ("QLinearAdd", quantized_twice(0.5, 0.5, 1), MICROSOFT, False),
    ("QLinearAdd", quantized_twice(0.05, 0.05, 0.2), MICROSOFT, True),
    ("QLinearAdd", quantized_twice(0.05, 0.07, 0.2), MICROSOFT, False),
    ("QLinearLeakyRelu", leaky(0.2, 0.25), {**MICROSOFT, "alpha": 0.625}, True),
    ("QLinearLeakyRelu", leaky(0.2, 0.3), {**MICROSOFT, "alpha": 0.625}, False),
    ("Reshape", [np.ones((0, 3)), np.array([0, 0, 4])], {}, True),
    ("Reshape", [np.ones((0, 3)), np.array([0, 0, 4])], {"allowzero": 1}, False),
    ("Reshape", [np.ones((0, 3)), np.array([0, 3, 4])], {}, False),
    ("Reshape", [np.ones((1, 3)), np.array([0, 0, 1])], {}, False),
    ("ReduceSum", [INTEGERS], {}, True),
    ("ReduceSum", [INTEGERS[1:]], {}, False),
    ("ReduceSumSquare", [INTEGERS[1:] - 2**16], {}, True),
    ("ReduceSum", [INTEGERS.astype(np.int64)], {}, False),
    ("InstanceNormalization", [CONSTANT, *NORM], {}, True),
    ("InstanceNormalization", [CONSTANT, *NORM], {"epsilon": 1.0}, False),
    ("InstanceNormalization", [CONSTANT + ROW[:3] * [0, 1, 2], *NORM], {}, False),
    ("Sign", [np.array([-1e-8], np.float32)], {}, True),
    ("LpNormalization", [np.array([[1e-8, 3], [1e-8, 4]], np.float32)], {}, True),
    ("Sign", [np.array([-1e-5], np.float32)], {}, False),
    ("Less", [np.array([1e-7, 4], np.float32), scale(0)], {}, True),
    ("Less", [np.array([1, 4], np.float32), scale(1 + 1e-6)], {}, True),
    ("Less", [np.array([0, 4], np.float32), scale(0)], {}, False),
    ("Less", [np.array([1e-3, 4], np.float32), scale(0)], {}, False),
    ("Less", [np.array([1, 2]), np.array(2)], {}, False),
    ("Less", [ROW, ROW[:3]], {}, False),
    ("Sigmoid", [np.array([-20, 20], np.float32)], {}, True),
    ("Sigmoid", [np.array([-10, 20], np.float32)], {}, False),
    ("Log", [np.array([1e-8, 1], np.float32)], {}, True),
    ("Log", [np.array([1e-5, 0], np.float32)], {}, False),
    ("NonZero", [np.array([0, 1], np.float32)], {}, False),
    ("NonMaxSuppression", [HALF, scale(1)], {}, False),
    ("Floor", [np.array([-1e-8, 0.25], np.float32)], {}, True),
    ("Floor", [np.array([0, 3], np.float32)], {}, False),
    ("Floor", [np.array([-1e-4, 0.25], np.float32)], {}, False),
    ("Ceil", [np.array([1.0000001, 0.25], np.float32)], {}, True),
    ("Round", [np.array([1.0000001, 0.25], np.float32)], {}, False),
    ("Round", [np.array([1.5000001, 0.25], np.float32)], {}, True),
    ("Round", [np.array([1.5, 0.25], np.float32)], {}, False),
    ("Cast", [np.array([1.9999999], np.float32)], {"to": 7}, True),
    ("Cast", [np.array([1.9999999], np.float32)], {"to": 10}, False),
    ("Cast", [np.array([1, 2], np.int32)], {"to": 7}, False),
    ("Asin", [np.array([-1.0000005, 0.5], np.float32)], {}, True),
    ("Asin", [np.array([-1, 0.5], np.float32)], {}, False),
    ("Pow", [np.array([-1e-8, 2], np.float32), scale(0.5)], {}, True),
    ("Pow", [np.array([-1e-8, 2], np.float32), scale(2)], {}, False),
    ("Pow", [np.array([0, 2], np.float32), scale(0.5)], {}, False),
    ("ConvTranspose", [IMAGE, IMAGE], {**SAME, "strides": [1, 3]}, True),
    ("ConvTranspose", [IMAGE, IMAGE], {**SAME, "strides": [2, 2]}, False),
    ("ConvTranspose", [IMAGE, IMAGE], {"strides": [1, 3]}, False),
    ("ConvTranspose", [IMAGE, IMAGE], {**SAME, **WIDE, "strides": [3, 3]}, False),
    ("LRN", [CHANNELS], {"size": 1, "alpha": 1.0}, True),
    ("LRN", [CHANNELS], {"size": 5, "alpha": 1.0}, False),
    ("LRN", [CHANNELS[:, ::-1]], {"size": 1, "alpha": 1.0}, False),
    ("LRN", [CHANNELS], {"size": 1, "alpha": 1.0, "bias": 1e5}, False),
]


@pytest.mark.parametrize("index", range(len(CASES)))
def test_rules(index: int) -> None:
    operator, operands, attrs, expected = CASES[index]
    names = [f"x{i}" for i in range(len(operands))]
    node = helper.make_node(operator, names, ["y"], **attrs)
    assert (explanation(node, operands) is not None) == expected


@pytest.mark.parametrize("row, expected", [("s", True), ("e", True), ("t", False)])
def test_rows_of_a_scan_that_its_body_does_not_compute(
    row: str, expected: bool
) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float s, float[3] a) => (float z, float[3] y)
        {{ z, y = Scan <num_scan_inputs = 1, body = b (float s, float e)
            => (float t, float {row}) {{ t = Add (s, e) }}> (s, a) }}""")
    operands = [np.float32(0), ROW[:3]]
    assert (explanation(model.graph.node[0], operands) is not None) == expected


LOOP = """Loop (n, c, s) <body = b (int64 i, bool d, string[2] t)
    => (bool e, string[2] u, {row}[2] r)
    {{ e = Identity (d)
      u = Identity (t)
      r = {row_of} }}>"""


@pytest.mark.parametrize(
    "row, trips, expected",
    [("string", 3, True), ("string", 1, False), ("float", 3, False)],
)
def test_rows_of_texts_of_a_loop(row: str, trips: int, expected: bool) -> None:
    body = LOOP.format(row=row, row_of="Identity (t)" if row == "string" else "Abs (x)")
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]>
        g (int64 n, bool c, string[2] s, float[2] x) => (string[2] f, {row}[k,2] z)
        {{ f, z = {body} }}""")
    feeds = {"n": np.array(trips), "c": np.array(True), "s": TEXTS[0], "x": ROW[:2]}
    node = model.graph.node[0]
    operands = [feeds[name] for name in node.input]
    assert (explanation(node, operands) is not None) == expected
    assert (explanation(node, [None, *operands[1:]]) is not None) == (row == "string")
    carried, rows = Oracle(model).outputs(feeds)
    assert carried.tolist() == TEXTS[0].tolist()
    stacked = TEXTS[:1].tolist() * trips if row == "string" else [[1, 1]] * trips
    assert (rows.tolist() == stacked) is not expected


def test_rows_of_texts_of_a_loop_in_a_body() -> None:
    body = LOOP.format(row="string", row_of="Identity (t)")
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]>
        g (int64 n, bool c, string[2] s) => (string[k,2] y)
        {{ y = If (c) <
            then_branch = p () => (string[k,2] z) {{ f, z = {body} }},
            else_branch = q () => (string[1,2] w) {{
                a = Constant <value_ints = [0]> ()
                w = Unsqueeze (s, a) }}> }}""")
    node = model.graph.node[0]
    assert explanation(node, [np.array(True)]) is not None
    del node.attribute[0].g.node[0].attribute[0].g.output[2]
    assert explanation(node, [np.array(True)]) is None


def test_jumping_outputs_follow_from_an_operator_that_is_not_continuous() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        g (float[2,2] x) => (float[2,2] p, float[2,2] r, float[2,2] s)
        { p = MatMul (x, x)
          q = Round (p)
          r = Add (q, x)
          s = Exp (p) }""")
    assert jumping_outputs(model) == [False, True, False]


def test_what_exact_numbers_decide_on_does_not_jump() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        g (float[n,2] x) => (float[n,2] y, float[n,2] z, float[n,2] w)
        <int64 two = {2}, float half = {0.5}>
        { n = Size (x)
          b = Less (n, two)
          y = If (b) <then_branch = t () => (float[n,2] u) { u = Exp (x) },
                      else_branch = e () => (float[n,2] v) { v = Neg (x) }>
          m = ReduceMax <keepdims = 0> (x)
          c = Less (m, half)
          z = If (c) <then_branch = r () => (float[n,2] o) { o = Exp (x) },
                      else_branch = s () => (float[n,2] p) { p = Neg (x) }>
          w = If (b) <then_branch = h () => (float[n,2] i) { i = Floor (x) },
                      else_branch = k () => (float[n,2] j) { j = Neg (x) }> }""")
    assert jumping_outputs(model) == [False, True, True]


def test_noise_of_constants_is_that_of_what_follows_from_them() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] p, float[2] q, float[2] r)
        <float[2] a = {1000, 999}, float[2] b = {2.5, 3.5}>
        { p = Identity (x)
          q = Add (x, a)
          s = Sub (a, b)
          r = Mul (s, b) }""")
    feeds = {"x": np.ones(2, np.float32)}
    p, q, r = noise_of_constants(model, feeds, Oracle(model).outputs(feeds))
    assert p == 0
    assert 0 < q < r < 0.2


def test_noise_of_attributes_is_a_step_of_float32() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        g (double[2] x) => (double[2] y) { y = LeakyRelu <alpha = 0.3> (x) }""")
    feeds = {"x": np.array([-1.0, 1.0])}
    (noise,) = noise_of_constants(model, feeds, Oracle(model).outputs(feeds))
    assert 0 < noise < 2**-24


def test_noise_of_constants_says_nothing_where_results_jump() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] p, float[2] q)
        <float[2] a = {1, 1}>
        { p = Add (x, a)
          b = Floor (a)
          q = Add (x, b) }""")
    feeds = {"x": np.ones(2, np.float32)}
    expected = Oracle(model).outputs(feeds)
    assert noise_of_constants(model, feeds, expected) == [0, 0]
