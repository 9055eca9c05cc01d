"""Defects of the importer are reported with a location and a remedy."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

import burn_import.compiler
from burn import nn
from burn_import import load
from burn_import.codegen.gate.gate import UnsafeSource
from burn_import.codegen.module.classes import ClassWriter
from burn_import.codegen.trace.function import Run
from burn_import.instantiate import check_record
from burn_import.internal import InternalError, defects, located
from burn_ir import InvalidModel
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved, stored
from tests.modules import Array

MODULE = '''"""Net."""

import burn
from burn import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.index = nn.buffer(4, dtype=burn.int64)
        self.mask = nn.buffer(2, dtype=burn.bool_)
'''
STATE: dict[str, Array] = {
    "linear.weight": np.zeros((2, 3), np.float32),
    "linear.bias": np.zeros(2, np.float32),
    "index": np.zeros(4, np.int64),
    "mask": np.zeros(2, bool),
}


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Write a model y = relu(x + w)."""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["h"], name="/act/add"),
        helper.make_node("Relu", ["h"], ["y"], name="/act/relu"),
    ]
    weights = (stored("w", np.ones(3, np.float32)),)
    return saved(
        tmp_path / "net.onnx", model(graph(nodes, {"x": [2, 3]}, ("y",), weights))
    )


def test_a_record_that_fits() -> None:
    check_record(MODULE, "Net", list(STATE.items()))


@pytest.mark.parametrize(
    ("key", "array", "problem"),
    [
        ("linear.bias", None, "no array for 'linear.bias'"),
        ("linear.extra", np.zeros(1), "no attribute for 'linear.extra'"),
        ("index", np.zeros(5, np.int64), r"'index' is int64\[5\], not int64\[4\]"),
        ("index", np.zeros(4, np.int32), r"'index' is int32\[4\], not int64\[4\]"),
        (
            "linear.weight",
            np.zeros((3, 2), np.float32),
            r"'linear.weight' is float32\[3, 2\]",
        ),
    ],
)
def test_a_record_that_does_not_fit(key: str, array: Any, problem: str) -> None:
    state = {**STATE, key: array}
    given = [(name, value) for name, value in state.items() if value is not None]
    with pytest.raises(InternalError, match=f"does not fit the module: {problem}"):
        check_record(MODULE, "Net", given)


def test_a_key_that_is_there_twice() -> None:
    items = list(STATE.items())
    with pytest.raises(InternalError, match="'index' twice"):
        check_record(MODULE, "Net", [*items, items[2]])


def test_few_of_many_problems_are_shown() -> None:
    wrong = [(f"k{number}", np.zeros(1)) for number in range(10)]
    with pytest.raises(InternalError, match="'k2'; and 7 more$"):
        check_record(MODULE, "Net", [*STATE.items(), *wrong])


def test_no_array_is_read_and_no_seed_is_used() -> None:
    huge = np.broadcast_to(np.float32(0), (2**20, 2**16))  # 256 GiB
    text = MODULE.replace("nn.Linear(3, 2)", f"nn.Embedding{huge.shape}")
    state = {"linear.weight": huge, "index": STATE["index"], "mask": STATE["mask"]}
    nn.init.seed(5)
    check_record(text, "Net", list(state.items()))
    drawn = nn.Linear(2, 2).weight.numpy()
    nn.init.seed(5)
    np.testing.assert_array_equal(drawn, nn.Linear(2, 2).weight.numpy())


@pytest.mark.parametrize(
    "line", ["open('f')", "__import__('os').getcwd()", "burn.x = 1", "nn.Module._x()"]
)
def test_nothing_that_the_gate_refuses_is_executed(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[object] = []
    monkeypatch.setattr("builtins.exec", lambda *_: executed.append(_))
    with pytest.raises(UnsafeSource):
        check_record(f"{MODULE}\n\n{line}\n", "Net", list(STATE.items()))
    assert executed == []


def test_a_module_that_does_not_take_its_record_is_not_written(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = SimpleNamespace(text=MODULE, weights=[], class_name="Net", notes=())
    monkeypatch.setattr(burn_import.compiler, "compile_graph", lambda *_: odd)
    answer = run(net, "-o", tmp_path / "out.py")
    assert answer.exit_code == 70
    (line,) = answer.stderr.splitlines()
    assert "the record does not fit the module: no array for 'linear.weight'" in line
    assert "try --flat" in line
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]
    assert "--flat" not in run(net, "-o", tmp_path / "out.py", "--flat").stderr
    with pytest.raises(InternalError, match="does not fit"):
        load(net)


def break_in(monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> None:
    """Have a method of the importer raise a KeyError."""

    def broken(*_: object) -> None:
        raise KeyError(("features",))

    monkeypatch.setattr(owner, method, broken)


@pytest.mark.parametrize(
    ("owner", "method", "place"),
    [(ClassWriter, "fields", "module 'Out'"), (Run, "name", "node of Add '/act/add'")],
)
def test_an_error_in_emission_names_place_and_remedy(
    net: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    place: str,
) -> None:
    break_in(monkeypatch, owner, method)
    answer = run(net, "-o", tmp_path / "out.py")
    assert answer.exit_code == 70 and answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert f"{net.name}: internal error: KeyError: ('features',)" in line
    assert "test_internal_errors.py:" in line and place in line
    assert "try --flat" in line and "please report it" in line
    for option in ("-v", "--verbose"):
        assert "Traceback" in run(net, "-o", tmp_path / "out.py", option).stderr
    actual = json.loads(run(net, "-o", tmp_path / "out.py", "--format", "json").stderr)
    assert actual["kind"] == "internal" and actual["model"] == str(net)


def test_an_error_in_a_pass_names_it(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_pass(graph: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr("burn_import.passes.PASSES", (broken_pass,))
    (line,) = run(net, "-o", tmp_path / "out.py").stderr.splitlines()
    assert "IndexError: list index out of range" in line
    assert "pass 'broken_pass'; try --no-simplify" in line and "--flat" not in line
    assert run(net, "-o", tmp_path / "out.py", "--no-simplify").exit_code == 0


def test_what_is_wrong_with_the_model_stays_what_it_is() -> None:
    with pytest.raises(InvalidModel), defects("a remedy"), located("module", "a"):
        raise InvalidModel("not this")
    with pytest.raises(KeyboardInterrupt), defects("a remedy"):
        raise KeyboardInterrupt


def test_the_innermost_place_counts() -> None:
    refused = pytest.raises(InternalError, match=r"in module 'a\.b'; try this$")
    with refused, defects("try this"), located("module", "a"), located("module", "a.b"):
        raise AssertionError("x")
