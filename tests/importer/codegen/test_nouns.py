"""Names of values, modules and outputs in generated source."""

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from burn_import.provenance.exporter_names import authored
from tests.importer.looped import check
from tests.importer.onnx_files import model, saved, stored
from tests.modules import generate, import_file

RNG = np.random.default_rng(7)
SIZE = 4


@pytest.mark.parametrize(
    "name",
    ["transpose", "view_3", "split_split_0", "cat_7", "add_12", "mul", "getitem_4"]
    + ["permute_1", "upsample_bilinear2d_3", "unsafe_split_1_split_2", "_to_copy"]
    + ["/m/layer.0/Add_2_output_0", "output_660", "onnx::Gemm_120", "12", "val_21"]
    + [
        "sym_size_int_38",
        "t_12",
        "node_7",
        "model/dense/BiasAdd:0",
        "hidden_states.5",
        "truediv_1",
    ]
    + ["native_batch_norm_legit_no_training_1", "scaled_dot_product_attention_2", "x"],
)
def test_what_exporters_make_up_is_no_name(name: str) -> None:
    assert authored(name) == ""


@pytest.mark.parametrize(
    ("name", "word"),
    [("key_3", "key"), ("attn_weights.3", "attn_weights"), ("encoder/query", "query")]
    + [("last_hidden_state", "last_hidden_state"), ("lambda_1", "lambda_")],
)
def test_what_authors_say_is_kept(name: str, word: str) -> None:
    assert authored(name) == word


class Decoder:
    """Layers of attention with a mask, as an exporter writes them."""

    def __init__(self, layers: int = 2) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights = [stored("one", np.array([1], np.int64))]
        self.weights.append(stored("two", np.array([2], np.int64)))
        self.weights.append(stored("shown", np.array(0, np.float32)))
        self.weights.append(stored("hidden", np.array(-1e38, np.float32)))
        self.count = 0
        mask = self.add("Cast", "attention_mask", scope="", to=TensorProto.BOOL)
        mask = self.add("Unsqueeze", mask, "one", scope="")
        self.mask = self.add("Where", mask, "shown", "hidden", scope="")
        x = "states"
        for number in range(layers):
            x = self.layer(f"layers.{number}", x)
        self.nodes.append(helper.make_node("MatMul", [x, "head.weight"], ["mm_9"]))
        weight = RNG.standard_normal((SIZE, 2)).astype(np.float32)
        self.weights.append(stored("head.weight", weight))

    def add(self, op: str, *inputs: str, scope: str, **attributes: Any) -> str:
        self.count += 1
        name = f"{scope}/{op}_{self.count}_output_0"
        node = f"{scope}/{op}_{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [name], node, **attributes))
        return name

    def linear(self, x: str, path: str) -> str:
        weight = RNG.standard_normal((SIZE, SIZE)).astype(np.float32)
        self.weights.append(stored(f"{path}.weight", weight))
        scope = "/" + path.replace("layers.", "layers/layers.").replace(
            ".self", "/self"
        )
        return self.add("MatMul", x, f"{path}.weight", scope=scope)

    def layer(self, path: str, x: str) -> str:
        scope = f"/{path}/self"
        heads = [
            self.add(
                "Unsqueeze", self.linear(x, f"{path}.self.{w}"), "one", scope=scope
            )
            for w in ("q_proj", "k_proj", "v_proj")
        ]
        out = self.add("Attention", *heads, self.mask, scope=scope)
        out = self.add("Squeeze", out, "one", scope=scope)
        out = self.linear(out, f"{path}.self.o_proj")
        return self.add("Add", out, x, scope=f"/{path}")

    def proto(self) -> onnx.ModelProto:
        shapes: dict[str, list[str | int | None]] = {
            "states": ["b", 3, SIZE],
            "attention_mask": ["b", 3, 3],
        }
        kinds = (TensorProto.FLOAT, TensorProto.INT64)
        graph = helper.make_graph(
            self.nodes,
            "net",
            [
                helper.make_tensor_value_info(name, kind, shapes[name])
                for name, kind in zip(shapes, kinds, strict=True)
            ],
            [helper.make_empty_tensor_value_info("mm_9")],
            self.weights,
        )
        return model(graph, 23)


def source(folder: Path, proto: onnx.ModelProto) -> str:
    path, _ = generate(saved(folder / "net.onnx", proto), folder)
    import_file(path)
    return path.read_text("utf-8")


def signatures(text: str) -> dict[str, list[str]]:
    """Return the parameters of every ``__call__`` by class."""
    return {
        cls.name: [arg.arg for arg in method.args.args[1:]]
        for cls in ast.parse(text).body
        if isinstance(cls, ast.ClassDef)
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "__call__"
    }


def test_a_value_has_one_noun_in_all_modules(tmp_path: Path) -> None:
    text = source(tmp_path, Decoder().proto())
    actual = signatures(text)
    assert actual["Net"] == ["states", "attention_mask"]
    assert actual["Layer"] == actual["LayerSelf"] == ["x", "attention_mask"]


def test_queries_keys_and_values_are_called_so(tmp_path: Path) -> None:
    text = source(tmp_path, Decoder().proto())
    results = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)]
    stores = {name.id for name in results if isinstance(name.ctx, ast.Store)}
    assert not [name for name in stores if name.startswith(("unsqueeze", "mat_mul"))]
    assert not [name for name in stores if re.search(r"\d$", name)]


def test_an_attribute_may_be_called_self(tmp_path: Path) -> None:
    text = source(tmp_path, Decoder().proto())
    assert "self.self = LayerSelf()" in text
    path = tmp_path / "net.py"
    keys = import_file(path).Net.load().state_dict()
    assert "layers.0.self.q_proj.weight" in keys


def nodes_of(*lines: str) -> list[onnx.NodeProto]:
    """Return nodes from ``outputs = Op inputs``."""
    results = []
    for line in lines:
        outputs, _, call = line.partition(" = ")
        op, *inputs = call.split()
        results.append(helper.make_node(op, inputs, outputs.split()))
    return results


def written(folder: Path, nodes: list[onnx.NodeProto], *outputs: str) -> str:
    """Return the source of a graph of one input, with a small stored matrix ``w``."""
    weight = stored("w", RNG.standard_normal((3, 3)).astype(np.float32))
    proto = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 3])],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [weight],
    )
    return source(folder, model(proto, 17))


def fields(text: str) -> list[str]:
    """Return the fields of the tuple that a module returns."""
    (result,) = (
        n
        for n in ast.parse(text).body
        if isinstance(n, ast.ClassDef) and n.name == "NetOutput"
    )
    lines = [s.target for s in result.body if isinstance(s, ast.AnnAssign)]
    return [target.id for target in lines if isinstance(target, ast.Name)]


def test_outputs_have_the_names_of_the_file(tmp_path: Path) -> None:
    nodes = nodes_of("logits = MatMul x w", "y = Tanh x")
    assert fields(written(tmp_path, nodes, "logits", "y")) == ["logits", "y"]


def test_outputs_of_exporters_go_by_their_nouns(tmp_path: Path) -> None:
    nodes = nodes_of(
        "mat_12 = MatMul x w", "softmax_3 = Softmax mat_12", "relu_4 = Relu x"
    )
    text = written(tmp_path, nodes, "softmax_3", "relu_4")
    assert fields(text) == ["probabilities", "output_1"]
    assert "(softmax_3)" in text and "(relu_4)" in text


def test_outputs_of_one_noun_are_counted(tmp_path: Path) -> None:
    nodes = nodes_of("softmax = Softmax x", "n = Neg x", "softmax_1 = Softmax n")
    text = written(tmp_path, nodes, "softmax", "softmax_1")
    assert fields(text) == ["probabilities_0", "probabilities_1"]


def test_a_name_without_its_number_means_nothing_to_python(tmp_path: Path) -> None:
    nodes = nodes_of("print_8 = Relu x", "m = Mul print_8 x", "y = Add m print_8")
    text = written(tmp_path, nodes, "y")
    assert "print_" in text


def test_numbers_of_an_author_stay(tmp_path: Path) -> None:
    nodes = nodes_of("present_key_0 = Tanh x", "present_key_1 = Relu x")
    text = written(tmp_path, nodes, "present_key_0", "present_key_1")
    assert fields(text) == ["present_key_0", "present_key_1"]


def test_a_stream_is_called_x_again(tmp_path: Path) -> None:
    lines = [
        "a_1 = MatMul x w",
        "a_2 = Relu a_1",
        "a_3 = Mul a_2 a_1",
        "y = Add a_3 a_1",
    ]
    text = written(tmp_path, nodes_of(*lines), "y")
    assert "x = self.linear(x)" in text
    assert not re.search(r"\b[a-z]+\d", text.partition("__call__")[2])


def test_extents_that_are_not_known_are_no_comment(tmp_path: Path) -> None:
    weight = stored("t", RNG.standard_normal((1, 9)).astype(np.float32))
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=0, end=1),
        helper.make_node("Slice", ["t", "zero", "s", "one"], ["part"]),
        helper.make_node("Exp", ["part"], ["e"]),
        helper.make_node("Mul", ["e", "part"], ["y"]),
    ]
    proto = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 3])],
        [helper.make_empty_tensor_value_info("y")],
        [weight, stored("zero", np.array([0])), stored("one", np.array([1]))],
    )
    assert "?" not in source(tmp_path, model(proto, 17)).partition("class Net")[2]


def test_inputs_of_tensorflow_are_called_without_the_number_of_the_result(
    tmp_path: Path,
) -> None:
    proto = helper.make_graph(
        [helper.make_node("Add", ["a:0", "b:1"], ["y"])],
        "net",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b"])
            for name in ("a:0", "b:1")
        ],
        [helper.make_empty_tensor_value_info("y")],
    )
    text = source(tmp_path, model(proto, 17))
    assert "def __call__(self, a: Tensor, b_1: Tensor) -> Tensor:" in text
    assert "a:0" in text  # the docstring has the name in the file


#: The range of a computed length, compared with lengths: a mask for products.
LENGTHS = """
agraph (int64[n] lengths, float[n, m] x) => (float[n, k] y) {
  zero = Constant <value_int: int = 0> ()
  one = Constant <value_int: int = 1> ()
  axis = Constant <value_ints: ints = [1]> ()
  longest = ReduceMax <keepdims: int = 0> (lengths)
  p = Range (zero, longest, one)
  s = Shape (p)
  count = Squeeze (s)
  q = Range (zero, count, one)
  wide = Unsqueeze (lengths, axis)
  hidden = Less (q, wide)
  cast_3 = Cast <to: int = 1> (hidden)
  a = Exp (cast_3)
  b = Mul (a, cast_3)
  y = Sub (b, cast_3)
}
"""


def test_a_condition_as_numbers_is_a_mask(tmp_path: Path) -> None:
    given = {
        "lengths": np.array([2, 3], np.int64),
        "x": np.zeros((2, 3), np.float32),
    }
    source = check(tmp_path, LENGTHS, given)
    assert "ops.exp(mask) * mask - mask" in source
    assert "ops.arange(size)" in source and "ops.array" not in source


#: Attention of rows of length 1: a query with two readers is still a query.
COSINES = """
agraph (float[3, 1, 2, 5, 4] x, float[2, 1, 1] s) => (float[1, 2, 5, 4] y) {
  zero = Constant <value_int: int = 0> ()
  one = Constant <value_int: int = 1> ()
  two = Constant <value_int: int = 2> ()
  axes = Constant <value_ints: ints = [-1]> ()
  a = Gather (x, zero)
  b = Gather (x, one)
  c = Gather (x, two)
  d = ReduceL2 (a, axes)
  e = Div (a, d)
  f = ReduceL2 (b, axes)
  g = Div (b, f)
  h = Exp (s)
  i = Mul (e, h)
  j = Transpose <perm = [0, 1, 3, 2]> (g)
  k = MatMul (i, j)
  l = Softmax (k)
  y = MatMul (l, c)
}
"""


def test_norms_and_scales_of_queries(tmp_path: Path) -> None:
    given = {
        "x": np.abs(RNG.normal(size=(3, 1, 2, 5, 4))).astype(np.float32),
        "s": RNG.normal(size=(2, 1, 1)).astype(np.float32),
    }
    source = check(tmp_path, COSINES, given)
    assert "query = x[0]" in source and "key = x[1]" in source
    assert "query / ops.reduce_l2(query" in source
    assert "query2" not in source and "piece" not in source
