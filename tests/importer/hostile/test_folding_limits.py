"""Small ONNX files that would cause much work or memory in constant folding."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from burn_import.loading import load
from burn_import.passes.cleanup import folding_cost
from burn_import.pipeline import import_model
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.dim import LARGEST, Dim, symbol
from burn_ir.errors import Undecided
from burn_ir.graph import Constants, Graph
from tests.importer.limits import IMPORT, check
from tests.importer.onnx_files import graph, model, saved, stored

HUGE = np.array([2**15, 2**16], np.int64)
ONE = np.array([0.5], np.float32)


def node(kind: str, inputs: str, outputs: str = "y", **attrs: Any) -> onnx.NodeProto:
    """Return a node of operands and results that are separated by spaces."""
    return helper.make_node(kind, inputs.split(), outputs.split(), **attrs)


def folded(*nodes: onnx.NodeProto, opset: int = 17) -> onnx.ModelProto:
    """Return a model that computes with one element broadcast to 2^31."""
    first = node("Expand", "one size", "e")
    arrays = stored("one", ONE), stored("size", HUGE), stored("k", np.array([1]))
    return model(graph([first, *nodes], {}, ("y",), arrays), opset)


def doubled(count: int) -> onnx.ModelProto:
    """Return a model of a string that is joined with itself ``count`` times."""
    nodes = [node("StringConcat", f"s{i} s{i}", f"s{i + 1}") for i in range(count)]
    nodes.append(node("Identity", f"s{count}"))
    text = stored("s0", np.array(["abcdefgh"], object))
    return model(graph(nodes, {}, ("y",), (text,)), 20)


def nested(count: int) -> onnx.ModelProto:
    """Return a model of ``count`` nested loops."""
    body = [node("Identity", "x", "v0")]
    for depth in range(count):
        proto = helper.make_graph(
            [*body, node("Identity", "c", f"go{depth}")],
            f"body{depth}",
            [
                helper.make_tensor_value_info(f"i{depth}", onnx.TensorProto.INT64, []),
                helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
                helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2]),
            ],
            [
                helper.make_tensor_value_info(f"go{depth}", onnx.TensorProto.BOOL, []),
                helper.make_tensor_value_info(f"v{depth}", onnx.TensorProto.FLOAT, [2]),
            ],
        )
        names = "n c x", f"v{depth + 1}"
        body = [node("Loop", *names, body=proto)]
    body.append(node("Identity", f"v{count}"))
    arrays = stored("n", np.array(2)), stored("c", np.array(True))
    return model(graph(body, {"x": [2]}, ("y",), arrays))


def squared(count: int) -> onnx.ModelProto:
    """Return a model of extents that are squared ``count`` times."""
    nodes = [node("Shape", "x", "d0")]
    for number in range(count):
        nodes.append(node("Mul", f"d{number} d{number}", f"t{number}"))
        nodes.append(node("Add", f"t{number} k", f"d{number + 1}"))
    nodes.append(node("Identity", f"d{count}"))
    return model(graph(nodes, {"x": ["n", "m"]}, ("y",), (stored("k", [1, 3]),)))


def written(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """Return a model whose output is computed from one element broadcast to 2^24."""
    first = node("Expand", "one size", "e")
    size = stored("size", np.array([4096, 4096]))
    arrays = stored("one", ONE), size, stored("axes", np.array([0]))
    proto = graph([first, *nodes], {}, ("y",), arrays)
    return model(proto, 21)


def calls(depth: int) -> onnx.ModelProto:
    """Return a model of functions that call the next one twice, ``depth`` deep."""
    functions = []
    for level in range(depth):
        last = level == depth - 1
        kind, domain = ("Sin", "") if last else (f"F{level + 1}", "own")
        body = [
            helper.make_node(kind, ["x"], ["t"], domain=domain),
            helper.make_node(kind, ["t"], ["y"], domain=domain),
        ]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        proto = helper.make_function("own", f"F{level}", ["x"], ["y"], body, opsets)
        functions.append(proto)
    call = helper.make_node("F0", ["x"], ["y"], domain="own")
    result = model(graph([call]), functions=functions)
    result.opset_import.append(helper.make_opsetid("own", 1))
    return result


FILES: dict[str, Callable[[], onnx.ModelProto]] = {
    "sum": lambda: folded(node("ReduceSum", "e", keepdims=0)),
    "maximum": lambda: folded(node("ReduceMax", "e", keepdims=0)),
    "norm": lambda: folded(node("ReduceL2", "e", keepdims=0)),
    "top": lambda: folded(node("TopK", "e k", "y i")),
    "places": lambda: folded(node("NonZero", "e")),
    "unique": lambda: folded(node("Unique", "e")),
    "flat": lambda: folded(node("Flatten", "e", "f"), node("Reshape", "f k")),
    "products": lambda: folded(
        node("Transpose", "e", "t"), node("MatMul", "e t", "p"), node("Neg", "p")
    ),
    "list": lambda: folded(
        node("SplitToSequence", "e", "q"), node("SequenceLength", "q")
    ),
    "strings": lambda: doubled(40),
    "extents": lambda: squared(30),
    "loops": lambda: nested(12),
    "too many loops": lambda: nested(24),
    "equal elements as a result": lambda: written(node("Identity", "e")),
    "powers as a result": lambda: written(node("Pow", "e one")),
    "determinant": lambda: written(node("Det", "e")),
    "depth": lambda: written(
        node("Cast", "e", "i", to=onnx.TensorProto.INT64), node("OneHot", "size i size")
    ),
    "window": lambda: written(
        *(node("Unsqueeze", "e axes", "u"), node("Unsqueeze", "u axes", "v")),
        node("MaxPool", "v", kernel_shape=[2000, 2000]),
    ),
    "calls": lambda: calls(14),
    "results": lambda: model(
        graph([node("Split", "x", " ".join(f"r{i}" for i in range(20_000)))], {}, ())
    ),
}


@pytest.mark.thorough
def test_small_files_take_little(tmp_path: Path) -> None:
    paths = []
    for name, result in FILES.items():
        paths.append(saved(tmp_path / f"{name.replace(' ', '_')}.onnx", result()))
    print(check(paths, IMPORT))


def test_more_loops_than_python_compiles_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "net.onnx", nested(24))
    with pytest.raises(UnsupportedModel, match="expected loops that Python can comp"):
        load(path)


def test_more_results_than_a_source_can_name_are_refused(tmp_path: Path) -> None:
    names = [f"r{i}" for i in range(5000)]
    proto = graph([node("Split", "x", " ".join(names))], {"x": [5000]}, ("r0",))
    with pytest.raises(InvalidModel, match="at most 4096 results of a node, got 5000"):
        import_model(saved(tmp_path / "net.onnx", model(proto, 13)))


def test_calls_that_become_many_nodes_for_their_file_are_refused(
    tmp_path: Path,
) -> None:
    path = saved(tmp_path / "net.onnx", calls(14))
    with pytest.raises(UnsupportedModel, match="to become at most 12424 nodes"):
        import_model(path)
    few = import_model(saved(tmp_path / "few.onnx", calls(5)))
    assert few.text.count(".sin()") or few.text.count("ops.sin(")


def test_a_large_constant_result_is_in_the_record(tmp_path: Path) -> None:
    table = np.arange(2000, dtype=np.float32)
    proto = graph([node("Identity", "table")], {}, ("y",), (stored("table", table),))
    path = saved(tmp_path / "net.onnx", model(proto))
    assert len(import_model(path).text) < 2000
    assert np.array_equal(run(path), table)


def test_what_folding_made_is_no_reason_to_fold_more() -> None:
    constants = Constants()
    constants.add("stored", np.zeros(10, np.float32))
    before = folding_cost.Budget(_of(constants))
    constants.add("made", np.zeros(1000, np.float32), source="stored")
    after = folding_cost.Budget(_of(constants))
    assert (before.work, before.free_bytes) == (after.work, after.free_bytes)


def _of(constants: Constants) -> Graph:
    return Graph("net", (), (), (), {}, constants)


def run(path: Path) -> Any:
    """Return the outputs of the model in a file without inputs."""
    loaded: Any = load(path)
    return loaded().numpy()


def test_what_is_not_folded_is_computed_when_the_model_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = np.array([3, 4], np.int64)
    nodes = [node("Expand", "one size", "e"), node("ReduceSum", "e", keepdims=0)]
    arrays = stored("one", ONE), stored("size", small)
    path = saved(tmp_path / "net.onnx", model(graph(nodes, {}, ("y",), arrays)))
    assert "reduce" not in import_model(path).text and run(path) == 6
    monkeypatch.setattr(folding_cost, "WORK", 0)
    monkeypatch.setattr(folding_cost, "WORK_PER_ELEMENT", 0)
    assert ".sum(" in import_model(path).text and run(path) == 6


def test_formulas_of_extents_have_a_size() -> None:
    n, m = symbol("n"), symbol("m")
    value: Dim = n + m
    with pytest.raises(Undecided, match=f"more than {LARGEST} symbols"):
        for _ in range(20):
            value = value * value + 1
    quotient: Dim = n
    with pytest.raises(Undecided, match=f"more than {LARGEST} symbols"):
        for _ in range(20):
            quotient = (quotient * quotient + quotient) // 3


def test_a_constant_joined_with_itself_is_followed_once(tmp_path: Path) -> None:
    nodes = [node("Concat", f"c{i} c{i}", f"c{i + 1}", axis=0) for i in range(18)]
    nodes.append(node("Add", "x c18"))
    arrays = (stored("c0", ONE),)
    proto = model(graph(nodes, {"x": [1]}, ("y",), arrays))
    print(check([saved(tmp_path / "net.onnx", proto)], IMPORT))
