"""How operations are written for PyTorch; no PyTorch is needed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from burn import Tensor, ops
from burn.dtypes import float32
from burn_import.codegen.gate.gate import UnsafeSource, check_body
from burn_import.codegen.torch import forms
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.codegen.torch.rules import TORCH_RULES
from burn_import.loading import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_import.tracing.constructor_numbers import ParameterFloat, ParameterInt
from burn_import.tracing.extents import Extents
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.trace import Apply, Origin, Symbol, Tracer
from burn_import.transform import WrongOptions
from burn_ir import Type, UnsupportedModel
from burn_ir.dim import symbol
from tests.importer.torch_target.models import (
    FLOAT,
    INT64,
    STRING,
    UINT16,
    body,
    compiled,
    one_node,
    saved,
    value,
)

assert forms  # they fill the table


@pytest.mark.parametrize(
    ("op", "shapes", "attributes", "expected"),
    [
        ("Relu", [["n", 3]], {}, "return F.relu(in0)"),
        ("Softmax", [["n", 3]], {"axis": 1}, "return F.softmax(in0, dim=1)"),
        ("Concat", [["n", 3]] * 2, {"axis": 1}, "return torch.cat([in0, in1], dim=1)"),
        ("Transpose", [["n", 3]], {"perm": [1, 0]}, "return in0.transpose(0, 1)"),
        ("MatMul", [["n", 3], [3, 4]], {}, "return in0 @ in1"),
        ("Max", [["n", 3]] * 2, {}, "return torch.maximum(in0, in1)"),
        (
            "MaxPool",
            [["n", 3, 8, 8]],
            {"kernel_shape": [2, 2], "strides": [2, 2]},
            "return F.max_pool2d(in0, 2)",
        ),
        (
            "MaxPool",
            [["n", 3, 8, 8]],
            {"kernel_shape": [3, 3], "pads": [0, 0, 1, 1]},
            "return F.max_pool2d(F.pad(in0, (0, 1, 0, 1), value=-math.inf), 3, "
            "stride=1)",
        ),
        ("LeakyRelu", [["n"]], {"alpha": 0.01}, "return F.leaky_relu(in0)"),
        (
            "LeakyRelu",
            [["n"]],
            {"alpha": 0.5},
            "return F.leaky_relu(in0, negative_slope=0.5)",
        ),
    ],
)
def test_an_operator_is_written_as_its_owner_would(
    op: str,
    shapes: list[Any],
    attributes: dict[str, Any],
    expected: str,
    tmp_path: Path,
) -> None:
    assert body(one_node(tmp_path, op, *shapes, **attributes)) == expected


def test_extents_are_read_and_tensors_are_made_where_the_input_is(
    tmp_path: Path,
) -> None:
    nodes = [
        helper.make_node("Shape", ["ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["seq"]),
        helper.make_node("Range", ["zero", "seq", "one"], ["positions"]),
        helper.make_node("Add", ["ids", "positions"], ["out"]),
    ]
    sides = [value("ids", ["batch", "seq"], INT64)], [value("out", None, INT64)]
    numbers = {"zero": np.array(0), "one": np.array(1)}
    lines = body(saved(tmp_path, nodes, *sides, numbers)).splitlines()
    assert lines == [
        "seq = ids.shape[1]",
        "return ids + torch.arange(seq, device=ids.device)",
    ]


def test_what_has_no_form_is_refused_by_node_and_operator(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("StringConcat", ["a", "b"], ["c"], name="the_node"),
        helper.make_node("StringConcat", ["c", "b"], ["out"], name="another_node"),
    ]
    kinds = {name: value(name, ["n"], STRING) for name in ("a", "b", "out")}
    path = saved(tmp_path, nodes, [kinds["a"], kinds["b"]], [kinds["out"]])
    with pytest.raises(UnsupportedModel) as refused:
        compiled(path)
    problem, other = refused.value.problems
    assert other.node == "another_node"
    assert (problem.node, problem.operator) == ("the_node", "StringConcat")
    assert problem.opset == 20
    assert "'string_concat' cannot be written in PyTorch" in problem.message
    assert [file.name for file in tmp_path.iterdir()] == ["net.onnx"]


def apply(primitive: Any, *args: Any, **static: Any) -> str:
    """Return the source of one call on a parameter ``x`` [n, 4, 8, 8]."""
    kind = Type(float32, (symbol("n"), 4, 8, 8))
    x = Symbol(kind, "x")
    render = TorchRenderer(Extents(Namespace()), str, lambda path: ".".join(path))
    render.names[x] = "x"
    for arg in args:
        if isinstance(arg, Tensor):
            render.names[arg.data] = arg.data.name
    call = Apply(
        primitive, (Tensor(x, Tracer()), *args), static, [Symbol()], Origin("node")
    )
    text = render.apply(call).text
    if render.problems:
        problems = list(render.problems)
        render.problems.clear()
        raise UnsupportedModel(problems)
    return text


def test_what_a_constructor_is_given_is_written_whatever_it_is_here() -> None:
    alpha = ParameterFloat(0.01, "self.alpha")  # the default, here
    assert apply(ops.leaky_relu, alpha=alpha).endswith("negative_slope=self.alpha)")
    size = ParameterInt(8, "self.size")
    assert apply(ops.reshape, (-1, size)) == "x.reshape(-1, self.size)"


def test_padding_by_such_a_number_does_not_depend_on_it() -> None:
    weight = Tensor(Symbol(Type(float32, (8, 4, 3, 3)), "weight"), Tracer())
    size, step = ParameterInt(2, "self.size"), ParameterInt(1, "self.step")
    assert apply(ops.conv, weight, padding=((size, 0), 1), dilation=step) == (
        "F.conv2d(F.pad(x, (1, 1, self.size, 0)), weight, dilation=self.step)"
    )
    assert apply(ops.conv, weight, padding=((size, size), size)) == (
        "F.conv2d(x, weight, padding=self.size)"
    )
    assert apply(ops.conv, weight, padding=(size, 1)) == (
        "F.conv2d(x, weight, padding=(self.size, 1))"
    )


def test_a_form_that_decides_by_such_a_number_is_refused() -> None:
    kernel = ParameterInt(3, "self.kernel")
    with pytest.raises(UnsupportedModel, match="equal in all modules of a class"):
        apply(ops.max_pool, kernel_size=kernel, stride=2, padding=1)


def test_the_largest_of_no_elements_is_refused(tmp_path: Path) -> None:
    path = one_node(tmp_path, "ReduceMax", ["n", 0], keepdims=0)
    with pytest.raises(UnsupportedModel, match="PyTorch has no max of no elements"):
        compiled(path)


def test_a_stored_zero_point_may_be_cast_and_a_module_may_not(tmp_path: Path) -> None:
    text = compiled(one_node(tmp_path, "Relu", ["n", 3])).text
    text = text.replace("import torch.nn", "import torch\nimport torch.nn", 1)
    cast = text.replace("F.relu(in0)", "in0 + self.zero.to(torch.float32)")
    assert cast != text
    check_body(cast.encode(), TORCH_RULES)
    with pytest.raises(UnsafeSource, match="'to'"):
        check_body(cast.replace("self.zero.to(", "self.to(").encode(), TORCH_RULES)


def test_a_step_backwards_is_a_helper() -> None:
    assert apply(ops.getitem, (slice(None), slice(None, None, -1))) == (
        "_slice(x, slice(None, None, None), slice(None, None, -1))"
    )


def test_a_number_of_the_round_has_the_dtype_of_the_model(tmp_path: Path) -> None:
    """``torch.tensor(i)`` would be an integer."""
    loop = helper.make_graph(
        [
            helper.make_node("Cast", ["i"], ["step"], to=FLOAT),
            helper.make_node("Identity", ["going"], ["still"]),
            helper.make_node("Add", ["x", "step"], ["y"]),
        ],
        "body",
        [value("i", [], INT64), value("going", [], 9), value("x", ["n"])],
        [value("still", [], 9), value("y", ["n"])],
    )
    node = helper.make_node("Loop", ["times", "", "x0"], ["out"], body=loop)
    inputs = [value("times", [], INT64), value("x0", ["n"])]
    text = compiled(saved(tmp_path, [node], inputs, [value("out", ["n"])])).text
    assert "torch.tensor(i, dtype=torch.float32, device=times.device)" in text


def test_numbers_that_pytorch_does_not_compute_with_are_refused(
    tmp_path: Path,
) -> None:
    node = helper.make_node("Add", ["a", "b"], ["out"], name="sum")
    kinds = {name: value(name, ["n"], UINT16) for name in ("a", "b", "out")}
    path = saved(tmp_path, [node], [kinds["a"], kinds["b"]], [kinds["out"]])
    with pytest.raises(UnsupportedModel, match="'sum'.*does not compute in uint16"):
        compiled(path)


def test_a_changed_helper_does_not_pass_the_gate(tmp_path: Path) -> None:
    path = one_node(tmp_path, "DepthToSpace", ["n", 8, 2, 2], blocksize=2)
    text = compiled(path).text
    assert "def _depth_to_space(" in text
    check_body(text.encode(), TORCH_RULES)
    with pytest.raises(UnsafeSource):
        changed = text.replace("n, channels, height, width = x.shape", "open('f')")
        check_body(changed.encode(), TORCH_RULES)


def test_the_target_is_part_of_the_options(tmp_path: Path) -> None:
    path = one_node(tmp_path, "Relu", ["n", 3])
    assert "options " in compiled(path).origin
    with pytest.raises(WrongOptions, match="expected the target burn"):
        load(path, Options(target="torch"))
    with pytest.raises(WrongOptions, match="expected a target among burn, torch"):
        import_model(path, Options(target="jax"))


def test_names_of_modules_are_no_names_of_values(tmp_path: Path) -> None:
    node = helper.make_node("Mul", ["torch", "F"], ["out"])
    inputs = [value("torch", ["n"]), value("F", ["n"])]
    path = saved(tmp_path, [node], inputs, [value("out", ["n"])])
    assert body(path) == "return torch_ * f"


def test_attributes_are_called_as_keys_are(tmp_path: Path) -> None:
    """The module of Burn has ``fc``, with a key that begins with an underscore."""
    node = helper.make_node("Gemm", ["x", "_fc.weight", "_fc.bias"], ["y"], transB=1)
    weights = {
        "_fc.weight": np.ones((2, 3), np.float32),
        "_fc.bias": np.ones(2, np.float32),
    }
    sides = [value("x", ["n", 3])], [value("y", ["n", 2])]
    result = compiled(saved(tmp_path, [node], *sides, weights))
    assert "self._fc = nn.Linear(3, classes)" in result.text
    assert "return self._fc(x)" in result.text
    assert [key for key, _ in result.weights] == ["_fc.weight", "_fc.bias"]


def test_attributes_that_modules_of_pytorch_have_are_refused(tmp_path: Path) -> None:
    node = helper.make_node(
        "Gemm", ["x", "train.weight", "train.bias"], ["y"], transB=1
    )
    weights = {
        "train.weight": np.ones((2, 3), np.float32),
        "train.bias": np.ones(2, np.float32),
    }
    sides = [value("x", ["n", 3])], [value("y", ["n", 2])]
    with pytest.raises(UnsupportedModel, match="have an attribute 'train'"):
        compiled(saved(tmp_path, [node], *sides, weights))
