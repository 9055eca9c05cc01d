"""Malicious programs: each is refused or read correctly, and quickly."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import burn
from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_ir import ModelError
from tests.importer.branched_files import choice, graph_inside, rich_program
from tests.importer.exported_files import (
    TABLE,
    archive,
    call,
    linear_program,
    meta,
    program,
    ref,
    saved,
    table,
)
from tests.importer.payloads import PAYLOADS, strings
from tests.pace import within
from tests.sampling import example_count

RICH, WEIGHTS = rich_program()
TEXT = json.dumps(RICH)
LINEAR, FEW = linear_program()
#: The time limit for refusing a file.
SECONDS = 2


def refused(path: Path) -> ModelError:
    """Return the error for the file at ``path``, raised within two seconds."""
    with within(SECONDS), pytest.raises(ModelError) as caught:
        load(path)
    return caught.value


def test_the_rich_program_computes_what_it_says(tmp_path: Path) -> None:
    model: Any = load(saved(tmp_path, RICH, WEIGHTS))
    rng = np.random.default_rng(3)
    for calls, (size, scale) in enumerate([(2, 1.0), (5, -1.0), (3, 9.0)], 6):
        x = scale * np.abs(rng.normal(size=(size, 4, 5))).astype(np.float32)
        linear = x @ WEIGHTS["head.weight"].T + WEIGHTS["head.bias"]
        relu = np.maximum(linear, 0)
        if relu.sum() > 20:
            total = linear.sum()
            first = np.exp(relu) if total > 0.5 else np.cos(linear)
        else:
            first, total = relu * linear, relu.sum()
        actual = model(burn.tensor(x))
        assert actual._fields == ("scaled", "total")
        np.testing.assert_allclose(actual[0].numpy(), first * calls, rtol=1e-4)
        np.testing.assert_allclose(actual[1].numpy(), total, rtol=1e-4)


def test_where_a_call_was_written_is_not_told(tmp_path: Path) -> None:
    compiled = import_model(saved(tmp_path, RICH, WEIGHTS), Options())
    for text in (compiled.text, compiled.origin, *(key for key, _ in compiled.weights)):
        assert "secret" not in text
        assert "/made/up" not in text


def change(of: Any, path: str, value: Any) -> None:
    """Set the value at a dotted path."""
    *around, last = path.split(".")
    for key in around:
        of = of[int(key)] if key.isdigit() else of[key]
    of[int(last) if last.isdigit() else last] = value


GRAPH = "graph_module.graph"
SIZE = "tensor_values.linear.sizes.1.as_int"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema_version", None),
        ("schema_version.major", 7),
        ("schema_version.major", 10**30),
        ("schema_version.major", "8"),
        ("graph_module", []),
        (GRAPH, {}),
        (f"{GRAPH}.nodes", {"a": 1}),
        (f"{GRAPH}.nodes.0.target", ""),
        (f"{GRAPH}.nodes.0.target", "os.system"),
        (f"{GRAPH}.nodes.0.inputs.1.arg.as_tensor.name", "linear"),
        (f"{GRAPH}.nodes.0.inputs.0.arg.as_tensor.name", "relu"),
        (f"{GRAPH}.nodes.0.outputs.0.as_tensor.name", "x"),
        (f"{GRAPH}.nodes.1.outputs", []),
        (f"{GRAPH}.nodes.1.inputs.0.name", "nonsense"),
        (f"{GRAPH}.nodes.1.inputs.0.arg", {"as_int": 10**40}),
        (f"{GRAPH}.tensor_values.x.dtype", 99),
        (f"{GRAPH}.tensor_values.x.sizes.1", {"as_int": 10**40}),
        (f"{GRAPH}.tensor_values.x.sizes", [{"as_int": 2}] * 100_000),
        (f"{GRAPH}.tensor_values.p_head_weight.sizes.0.as_int", 2**62),
        ("graph_module.signature.input_specs", []),
        ("graph_module.signature.output_specs", []),
        ("graph_module.signature.input_specs.0.parameter.parameter_name", "../../etc"),
        ("graph_module.signature.output_specs.0", {"loss_output": {}}),
        ("graph_module.signature.output_specs.0.user_output.arg", {"as_what": 1}),
    ],
)
def test_what_contradicts_itself_is_refused(
    tmp_path: Path, path: str, value: Any
) -> None:
    content = json.loads(json.dumps(LINEAR))
    change(content, path, value)
    refused(saved(tmp_path, content, FEW))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("head.weight.path_name", "../../../../etc/passwd"),
        ("head.weight.path_name", "/etc/passwd"),
        ("head.weight.path_name", "weight_0\0"),
        ("head.weight.path_name", "../models/../data/weights/weight_0"),
        ("head.weight.path_name", "nothing"),
        ("head.weight.use_pickle", True),
        ("head.weight.tensor_meta.sizes.0.as_int", 2**62),
        ("head.weight.tensor_meta.sizes.0.as_int", -3),
        ("head.weight.tensor_meta.sizes.0.as_int", None),
        ("head.weight.tensor_meta.sizes.0", {"as_expr": {"expr_str": "s0"}}),
        ("head.weight.tensor_meta.strides.0.as_int", 2**62),
        ("head.weight.tensor_meta.strides.0.as_int", -1),
        ("head.weight.tensor_meta.storage_offset.as_int", 2**62),
        ("head.weight.tensor_meta.storage_offset.as_int", -1),
        ("head.weight.tensor_meta.dtype", 8),
        ("head.weight.tensor_meta.dtype", 99),
        ("head.weight", None),
        ("head.weight", []),
    ],
)
def test_weights_that_are_elsewhere_are_refused(
    tmp_path: Path, path: str, value: Any
) -> None:
    config = table(FEW)
    key, dot, rest = path.partition(".weight")
    change(config["config"], "0", value) if not dot else None
    of = config["config"]
    if rest:
        change(of[f"{key}{dot}"], rest[1:], value)
    else:
        of[f"{key}{dot}"] = value
    data = archive(LINEAR, FEW, **{TABLE: json.dumps(config).encode()})
    folder = tmp_path / "net.pt2"
    folder.write_bytes(data)
    assert "head" in str(refused(folder))


@pytest.mark.parametrize(
    "entries",
    [
        {"models/model.json": TEXT[:-100].encode()},
        {"models/model.json": b""},
        {"models/model.json": b"\xff\xfe"},
        {"models/model.json": b"null"},
        {"models/model.json": b"[" * 200_000},
        {"models/model.json": b'{"a":' * 100_000},
        {"models/model.json": b"1" * 100_000},
        {TABLE: b"[]"},
        {TABLE: b"{"},
        {"data/weights/weight_0": b""},
        {"archive_format": b"pt3"},
        {"byteorder": b"big"},
        {"../outside": b""},
        {"a\\b": b""},
    ],
)
def test_damaged_archives_are_refused(
    tmp_path: Path, entries: dict[str, bytes]
) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(archive(RICH, WEIGHTS, **entries))
    refused(path)


def test_two_programs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    data = archive(RICH, WEIGHTS, **{"models/other.json": TEXT.encode()})
    path.write_bytes(data.replace(b"models/model.json", b"models/modem.json"))
    assert "expected one program" in str(refused(path))


def test_a_cut_off_file_is_refused(tmp_path: Path) -> None:
    data = archive(RICH, WEIGHTS)
    path = tmp_path / "net.pt2"
    for end in range(0, len(data), len(data) // 30):
        path.write_bytes(data[:end])
        refused(path)


def test_calls_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    two = meta("float32", [2])
    nodes = [
        call("aten.exp.default", "a", self=ref("b")),
        call("aten.exp.default", "b", self=ref("a")),
    ]
    content = program({"x": two}, {}, nodes, {"a": two, "b": two}, ["b"])
    assert "expected a value called 'b'" in str(refused(saved(tmp_path, content, {})))


def test_views_of_themselves_are_refused_or_read(tmp_path: Path) -> None:
    two = meta("float32", [2])
    nodes = [
        call("aten.t.default", "a", self=ref("x")),
        call("aten.t.default", "x", self=ref("a")),
        call("aten.t.default", "x", self=ref("x")),
        *(
            call("aten.add_.Tensor", "a", self=ref("x"), other=one(1))
            for _ in range(40)
        ),
    ]
    content = program({"x": two}, {}, nodes, {"a": two}, ["a"])
    with within(SECONDS), suppress(ModelError):
        load(saved(tmp_path, content, {}))


def nested(depth: int) -> Any:
    """Return a program of nested branches, each with a short side."""
    two, truth = meta("float32", [2]), meta("bool", [])
    inner, result = {"a": two, "c": truth}, {"r": two}
    exp = call("aten.exp.default", "r", self=ref("a"))
    short = side = graph_inside(inner, [exp], result, ["r"])
    for _ in range(depth):
        node = choice("c", [side, short], ["a", "c"], ["r"])
        side = graph_inside(inner, [node], result, ["r"])
    node = choice("c", [side, short], ["a", "c"], ["r"])
    return program(inner, {}, [node], result, ["r"])


def test_branches_in_branches_are_read_to_a_depth(tmp_path: Path) -> None:
    model: Any = load(saved(tmp_path, nested(12), {}))
    x = np.array([0.5, 1.0], np.float32)
    actual = model(burn.tensor(x), burn.tensor(np.array(False)))
    np.testing.assert_allclose(actual.numpy(), np.exp(x), rtol=1e-6)
    assert "at most 24 nested graphs" in str(refused(saved(tmp_path, nested(60), {})))


NUMBERS = [0, -1, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), 10**40]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "make",
    [
        lambda n: call(
            "aten.full.default", "y", size=ints(n), fill_value={"as_int": 1}
        ),
        lambda n: call("aten.expand.default", "y", self=ref("x"), size=ints(n, 2)),
        lambda n: call("aten.repeat.default", "y", self=ref("x"), repeats=ints(n)),
        lambda n: call("aten.view.default", "y", self=ref("x"), size=ints(n)),
        lambda n: call("aten.add.Tensor", "y", self=ref("x"), other={"as_int": n}),
        lambda n: call("aten.permute.default", "y", self=ref("x"), dims=ints(n)),
        lambda n: call("aten.select.int", "y", self=ref("x"), dim=one(n), index=one(0)),
        lambda n: call("aten.select.int", "y", self=ref("x"), dim=one(0), index=one(n)),
        lambda n: call("aten.arange.default", "y", end=one(n)),
        lambda n: call("aten.cumsum.default", "y", self=ref("x"), dim=one(n)),
    ],
)
def test_huge_numbers_do_no_harm(
    tmp_path: Path, make: Callable[[int], Any], number: int
) -> None:
    two = meta("float32", [2])
    content = program({"x": two}, {}, [make(number)], {"y": two}, ["y"])
    with within(SECONDS), suppress(ModelError):
        load(saved(tmp_path, content, {}))


def test_one_element_seen_many_times_is_not_stored(tmp_path: Path) -> None:
    many, row = meta("float32", [10**8]), meta("float32", [2, 3])
    nodes = [
        call("aten.zeros.default", "zeros", size=ints(10**8)),
        call("aten.exp.default", "ones", self=ref("zeros")),
        call("aten.sum.default", "total", self=ref("ones")),
        call("aten.add.Tensor", "y", self=ref("x"), other=ref("total")),
    ]
    values = {"zeros": many, "ones": many, "total": meta("float32", []), "y": row}
    content = program({"x": row}, {}, nodes, values, ["y"])
    compiled = import_model(saved(tmp_path, content, {}))
    assert sum(array.nbytes for _, array in compiled.weights) < 2**20
    assert "ops.full((100000000,), 0.0)" in compiled.text


def ints(*values: int) -> dict[str, Any]:
    return {"as_ints": list(values)}


def one(value: int) -> dict[str, Any]:
    return {"as_int": value}


def renamed(of: Any, old: str, new: str) -> Any:
    """Return JSON with a string replaced, also in keys."""
    if isinstance(of, dict):
        return {renamed(k, old, new): renamed(v, old, new) for k, v in of.items()}
    if isinstance(of, list):
        return [renamed(item, old, new) for item in of]
    return new if of == old else of


#: Names in a program that an author or the exporter chose.
NAMES = [
    *("x", "linear", "relu", "first", "second", "scaled", "a", "e", "cond", "s"),
    *("p_head_weight", "b_steps_count", "graph_inside", "2.13.0"),
]


@settings(max_examples=example_count(80), suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(NAMES), st.one_of(st.sampled_from(PAYLOADS), strings))
def test_names_are_nothing_but_names(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str
) -> None:
    content = renamed(json.loads(TEXT), name, text)
    path = saved(tmp_path_factory.mktemp("names"), content, WEIGHTS)
    with within(SECONDS), suppress(ModelError):
        model: Any = load(path)  # inspects the source before running it
        model(burn.tensor(np.ones((2, 4, 5), np.float32)))
    assert not Path("pwned").exists()


@settings(max_examples=example_count(40), suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["head.weight", "steps.count", "modules", "symbol"]), strings)
def test_paths_are_nothing_but_paths(
    tmp_path_factory: pytest.TempPathFactory, what: str, text: str
) -> None:
    content, weights = json.loads(TEXT), dict(WEIGHTS)
    if what in weights:
        content = renamed(content, what, text)
        weights = {text if key == what else key: v for key, v in weights.items()}
    elif what == "symbol":
        old, new = "Symbol('s7'", f"Symbol('{text}'"
        content = json.loads(TEXT.replace(old, json.dumps(new)[1:-1]))
    else:
        for node in content["graph_module"]["graph"]["nodes"]:
            stack = f"L__self__,,Net;{text},{text},{text}"
            node["metadata"]["nn_module_stack"] = stack
    folder = tmp_path_factory.mktemp("paths")
    with within(SECONDS), suppress(ModelError):
        load(saved(folder, content, weights))
    assert not Path("pwned").exists()
