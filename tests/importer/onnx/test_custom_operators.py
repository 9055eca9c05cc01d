"""Operators that users declare: the example in the docs, and refusals."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import burn
from burn_import import load
from burn_import.build.models import bring_up_to_date, configured
from burn_ir import ModelError, op as declarations, operators
from tests.cli.commands import run
from tests.importer.onnx_files import saved

PAGE = Path(__file__).parents[3] / "docs" / "custom-operators.md"
BLOCK = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
X = np.random.default_rng(5).normal(size=(2, 3, 4)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, with the files of the page and no declarations."""
    for name, text in BLOCK.findall(PAGE.read_text()):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "example_operators", raising=False)
    # Declarations of a test are removed after it.
    before = dict(operators())
    monkeypatch.setattr(declarations, "_OPERATORS", before)
    return tmp_path


def unit(x: str, y: str, **attrs: Any) -> onnx.NodeProto:
    """Return a node of the example's operator."""
    return helper.make_node("GatedUnit", [x], [y], domain="com.example", **attrs)


def net(
    folder: Path,
    nodes: list[onnx.NodeProto],
    opset: int = 2,
    functions: tuple[onnx.FunctionProto, ...] = (),
) -> Path:
    """Write a model of the nodes, from x to y."""
    x = helper.make_tensor_value_info("x", 1, ["batch", 3, 4])
    graph = helper.make_graph(
        nodes, "net", [x], [helper.make_empty_tensor_value_info("y")]
    )
    opsets = [helper.make_opsetid(*pair) for pair in (("", 17), ("com.example", opset))]
    if functions:
        opsets.append(helper.make_opsetid("local", 1))
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=8, functions=functions
    )
    return saved(folder / "net.onnx", model)


def result(model: Any) -> Any:
    return model(burn.tensor(X)).numpy()


def gated(x: Any, slope: float) -> Any:
    return x / (1 + np.exp(-slope * x))


def test_the_command_and_the_script_of_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net(folder, [unit("x", "y", slope=0.5)])
    answer = run("net.onnx", "--operators", "example_operators")
    assert (answer.exit_code, answer.stderr) == (0, "")
    text = (folder / "net.py").read_text()
    assert "x * ops.sigmoid(x * 0.5)" in text and "example_operators" not in text
    monkeypatch.syspath_prepend(str(folder))
    script = runpy.run_path(str(folder / "import_net.py"))
    np.testing.assert_allclose(result(script["model"]), gated(X, 0.5), rtol=1e-5)


def test_verify_takes_custom_operators(folder: Path) -> None:
    net(folder, [unit("x", "y", slope=1.0)])
    sigmoid = helper.make_node("Sigmoid", ["x"], ["g"])
    gate = [sigmoid, helper.make_node("Mul", ["x", "g"], ["y"])]
    x = helper.make_tensor_value_info("x", 1, ["batch", 3, 4])
    graph = helper.make_graph(
        gate, "silu", [x], [helper.make_empty_tensor_value_info("y")]
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    saved(folder / "silu.onnx", model)
    call = ("verify", "net.onnx", "--reference", "silu.onnx")
    assert "pass that with --operators MODULE" in run(*call).stderr
    answer = run(*call, "--operators", "example_operators")
    assert (answer.exit_code, answer.stderr) == (0, "")


def test_old_versions_are_upgraded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    for attrs, slope in (({}, 2.0), ({"beta": 0.5}, 0.5)):
        path = net(folder, [unit("x", "y", **attrs)], opset=1)
        model = load(path, operators=["example_operators"])
        np.testing.assert_allclose(result(model), gated(X, slope), rtol=1e-5)


def test_in_branches_and_functions(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    branches = {
        name: helper.make_graph(
            [unit("f", "b", slope=slope)],
            name,
            [],
            [helper.make_empty_tensor_value_info("b")],
        )
        for name, slope in (("then_branch", 3.0), ("else_branch", 0.5))
    }
    nodes = [
        helper.make_node("Twice", ["x"], ["f"], domain="local"),
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "s"], ["c"]),
        helper.make_node("If", ["c"], ["y"], **branches),
    ]
    body = [unit("a", "b"), unit("b", "c", slope=2.0)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 2)]
    twice = helper.make_function("local", "Twice", ["a"], ["c"], body, opsets)
    path = net(folder, nodes, functions=(twice,))
    model = load(path, operators=["example_operators"])
    expected = gated(gated(gated(X, 1.0), 2.0), 0.5)
    np.testing.assert_allclose(result(model), expected, rtol=1e-5)


def test_an_entry_point_is_loaded_for_its_domain(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = folder / "example-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1\n")
    points = "com.example = example_operators\ncom.other = not_there\n"
    (info / "entry_points.txt").write_text(f"[burn_import.operators]\n{points}")
    monkeypatch.syspath_prepend(str(folder))
    model = load(net(folder, [unit("x", "y")]))
    np.testing.assert_allclose(result(model), gated(X, 1.0), rtol=1e-5)
    node = helper.make_node("Other", ["x"], ["y"], domain="com.other")
    with pytest.raises(ModelError, match="'com.other' from example.*not_there"):
        load(net(folder, [node]))


@pytest.mark.parametrize(
    ("attrs", "opset", "message"),
    [
        ({}, 3, "expected opset 2 or older of domain 'com.example'"),
        ({"beta": 1.0}, 2, r"expected attributes among \['slope'\], got beta"),
    ],
)
def test_what_is_not_declared_is_refused(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    attrs: dict[str, float],
    opset: int,
    message: str,
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    path = net(folder, [unit("x", "y", **attrs)], opset)
    with pytest.raises(ModelError, match=message):
        load(path, operators=["example_operators"])


def test_another_operator_of_the_domain_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    node = helper.make_node("GatedUnits", ["x"], ["y"], domain="com.example")
    with pytest.raises(ModelError, match="not supported; did you mean 'GatedUnit'"):
        load(net(folder, [node]), operators=["example_operators"])


def test_a_module_that_is_not_there(folder: Path) -> None:
    net(folder, [unit("x", "y")])
    answer = run("net.onnx", "--operators", "no_such_module")
    assert answer.exit_code == 4
    assert "cannot load the operators 'no_such_module'" in answer.stderr
    assert run("net.onnx").exit_code == 4, "nothing is declared without"
    assert not (folder / "net.py").exists()


def test_a_kernel_of_ones_own_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (folder / "example_operators.py").read_text()
    text = text.replace("ops.sigmoid(", "mine(")
    head = (
        "from burn.primitive import composite\n"
        "def my_kernel(x):\n    return x\n"
        "mine = composite(my_kernel)\n"
    )
    (folder / "example_operators.py").write_text(head + text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr("burn.primitive._PRIMITIVES", {})
    with pytest.raises(ModelError, match="expected operations of burn.ops.*my_kernel"):
        load(net(folder, [unit("x", "y")]), operators=["example_operators"])


def test_the_table_of_the_build_hook(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    net(folder, [unit("x", "y", slope=0.5)])
    entry = {"input": "net.onnx", "output": "net.py"}
    table = {"models": [{**entry, "operators": ["example_operators"]}]}
    assert bring_up_to_date(*configured(table, folder)) == []
    assert "ops.sigmoid(x * 0.5)" in (folder / "net.py").read_text()
    with pytest.raises(ValueError, match="operators: expected a list of text"):
        configured({"models": [{**entry, "operators": "example_operators"}]}, folder)
