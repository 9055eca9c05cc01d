"""Strings of a model never become code in generated source."""

import ast
import itertools
import keyword
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings, strategies as st
from onnx import helper

import burn
from burn_import import load
from burn_import.codegen.gate.gate import check, check_body
from burn_import.codegen.module.descriptions import covered_modules
from burn_import.codegen.module.module import wrap_sentences
from burn_import.compiler import compile_graph
from burn_import.frontends.onnx.dims import DimNames
from burn_import.frontends.onnx.scopes import scope_of
from burn_import.options import Options
from burn_import.output import header
from burn_import.tracing.identifiers import camel, comment, identifier, literal, snake
from burn_ir import Graph, build
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.types import Type
from tests.importer.onnx_files import model, saved, stored
from tests.importer.payloads import AWKWARD, LONG, PAYLOADS, strings
from tests.layout import printed_only as printed_only
from tests.sampling import emission_count, example_count

FLOAT = onnx.TensorProto.FLOAT
RNG = np.random.default_rng(7)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
WEIGHT = RNG.normal(size=(4, 5)).astype(np.float32)
BIAS = RNG.normal(size=(5,)).astype(np.float32)
SCALE = RNG.normal(size=(3, 5)).astype(np.float32)

PLAIN = ["x", "w", "b", "s", "h", "g", "t", "y", "mm", "ad", "ac", "mu", "rs", "batch"]
examples = settings(
    max_examples=example_count(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
emissions = settings(examples, max_examples=emission_count())
#: Of modules, each of which is compiled.
fewer_emissions = settings(examples, max_examples=max(1, emission_count() // 4))


def short(text: str) -> str:
    """Return the name of a test with a payload."""
    return ascii(text)[:30]


def raw_model(
    names: list[str],
    title: str = "net",
    doc: str = "",
    producer: str = "",
) -> RawModel:
    """Return ``reshape(relu(x @ w + b) * s)`` with names in the order of PLAIN."""
    x, w, b, s, h, g, t, y, *nodes, dim = names
    wires = [
        ("MatMul", (x, w), (h,)),
        ("Add", (h, b), (g,)),
        ("Relu", (g,), (t,)),
        ("Mul", (t, s), (t + "2",)),
        ("Reshape", (t + "2", y + "shape"), (y,)),
    ]
    parts = []
    for (kind, inputs, outputs), name in zip(wires, nodes, strict=True):
        scope, classes = scope_of(name, {})
        parts.append(RawNode(kind, "", {}, inputs, outputs, name, scope, classes))
    shape = np.array([0, -1], np.int64)
    batch = DimNames().named(dim)
    return RawModel(
        RawGraph(
            title,
            {x: Type(burn.float32, (batch, 3, 4))},
            (y,),
            tuple(parts),
            {w: WEIGHT, b: BIAS, s: SCALE, y + "shape": shape},
            doc=doc,
        ),
        {"": 17},
        producer,
    )


def expected() -> Any:
    """Return the result of every one of these models."""
    return (np.maximum(X @ WEIGHT + BIAS, 0) * SCALE).reshape(2, -1)


def run(graph: Graph) -> Any:
    """Return the result of the module generated for ``graph``."""
    source = compile_graph(graph, Options(), "model.safetensors")
    module = ModuleType("printed")
    module.__file__ = "printed"
    exec(compile(source.text, "printed", "exec"), module.__dict__)
    net = getattr(module, source.class_name)()
    net.load_state_dict(dict(source.weights))
    return net(burn.tensor(X))


def same_result(raw: RawModel) -> None:
    """Compile twice, check the bytes, and run them."""
    graph = build(raw)
    text = compile_graph(graph, Options(), "model.safetensors").text
    assert compile_graph(build(raw), Options(), "model.safetensors").text == text
    check((header(raw.producer, "0" * 64, "0" * 64, text) + text).encode("ascii"))
    result = run(graph)
    np.testing.assert_allclose(result.numpy(), expected(), rtol=1e-5, atol=1e-5)


def distinct(names: list[str]) -> bool:
    """Return whether the model is valid: each value has one producer."""
    values = [*names[:8], names[6] + "2", names[7] + "shape"]
    return len(set(values)) == len(values)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of LONG
@examples
@given(st.lists(strings, min_size=14, max_size=14, unique=True).filter(distinct))
def test_names_of_values_nodes_and_dims_do_not_matter(names: list[str]) -> None:
    same_result(raw_model(names))


@pytest.mark.parametrize("name", PAYLOADS + AWKWARD + LONG, ids=short)
@pytest.mark.sampled(4)
def test_one_name_in_every_slot(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"{name}{number}" for number in range(14)]
    same_result(raw_model(names, name, name, name))
    dotted = [f"{name}.{number}" for number in range(14)]
    same_result(raw_model(dotted))
    assert not list(tmp_path.iterdir())


def shape(text: str) -> list[str]:
    """Return the types of a module's syntax nodes, without their contents."""
    return [type(node).__name__ for node in ast.walk(ast.parse(text))]


@cache
def plain_shape() -> list[str]:
    """Return the shape of the module with harmless names."""
    return shape(compile_graph(build(raw_model(PLAIN)), Options("Net"), "n.st").text)


@fewer_emissions
@given(strings, strings, strings, strings)
@example(*["coding: utf-7 +AAo-"] * 4)
def test_titles_change_no_code(title: str, doc: str, producer: str, node: str) -> None:
    flat = node.replace("/", "").replace(".", "")
    names = [*PLAIN[:8], *[f"{flat}{n}" for n in range(5)], PLAIN[-1]]
    raw = raw_model(names, title, doc, producer)
    text = compile_graph(build(raw), Options("Net"), "n.safetensors").text
    assert shape(text) == plain_shape()
    whole = header(f"{title} ({producer})", "0" * 64, "0" * 64, text) + text
    assert whole.count("\n") == text.count("\n") + 4
    check(whole.encode("ascii"))


@emissions
@given(strings | st.text(max_size=60), st.sampled_from([identifier, snake, camel]))
def test_identifiers_are_identifiers(text: str, make: Any) -> None:
    name = make(text)
    assert name.isidentifier() and name.isascii() and len(name) <= 60
    assert not keyword.iskeyword(name) and not name.startswith("_")
    assert name == make(text)


@emissions
@given(strings | st.text(max_size=60) | st.floats() | st.integers() | st.booleans())
def test_literals_give_the_value_back(value: Any) -> None:
    text = literal([value, (value,)])
    assert text.isascii() and "\n" not in text
    plain = text.replace("math.inf", "1e999").replace('float("nan")', "(1e999 - 1e999)")
    names: dict[str, Any] = {"__builtins__": {}}
    if "nan" in repr(value) or "inf" in repr(value):
        return
    back, (again,) = eval(plain, names)  # noqa: S307  that is what is tested
    assert back == value and again == value and type(back) is type(value)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("a word another word", 12, "a word..."),
        ("a word another word", 19, "a word another word"),
        ("one two, three", 11, "one two..."),
        ("abcdefghij", 6, "abc..."),
        ("\u00e9 \u00e9 \u00e9", 14, "\\u00e9..."),
    ],
)
def test_long_comments_end_after_a_word(text: str, limit: int, expected: str) -> None:
    assert comment(text, limit) == expected


def test_long_notes_end_after_a_sentence() -> None:
    note = f"The first sentence. {'word ' * 90}end."
    assert wrap_sentences([note, "Another."]) == ["The first sentence. Another."]
    *_, last = wrap_sentences(["word " * 90])
    assert last.endswith(" word...")
    assert wrap_sentences(["One e.g. two. Three."]) == ["One e.g. two. Three."]


@emissions
@given(strings | st.text(max_size=200))
def test_comments_are_one_plain_line(text: str) -> None:
    line = comment(text)
    assert line.isascii() and line.isprintable() and len(line) <= 100
    assert '"' not in line and "\\" not in re.sub(r"\\u\w{4}|\\U\w{8}", "", line)
    parsed = ast.parse(f'"""{line}"""\nx = 1  # {line}\n')
    letters = "".join(c for c in text if c.isprintable() and not c.isascii())
    read = ast.get_docstring(parsed) or ""
    assert letters.startswith("".join(c for c in read if not c.isascii()))
    for directive in ("coding:", "coding=", "fmt: off", "type: ignore", "noqa"):
        assert directive not in line


def file_of(payload: str, tmp_path: Path) -> Path:
    """Return a file with ``payload`` in every slot for a string."""
    values = [f"{payload}{n}" for n in range(5)]
    node = helper.make_node("Add", values[:2], [values[2]], name=payload)
    act = helper.make_node("Relu", [values[2]], [values[3]], name=payload)
    for result in (node, act):
        result.doc_string = payload
        entry = result.metadata_props.add()
        entry.key, entry.value = "pkg.torch.onnx.name_scopes", repr(["", payload, "x"])
    graph = helper.make_graph(
        [node, act],
        payload,
        [
            helper.make_tensor_value_info(
                values[0], onnx.TensorProto.FLOAT, [payload, 5]
            )
        ],
        [helper.make_empty_tensor_value_info(values[3])],
        [stored(values[1], BIAS)],
        payload,
    )
    proto = model(graph, producer_name=payload, producer_version=payload)
    proto.domain = proto.doc_string = payload
    opset = proto.opset_import.add()
    opset.domain, opset.version = payload, 1
    helper.set_model_props(proto, {payload: payload})
    return saved(tmp_path / "model.onnx", proto)


@pytest.mark.parametrize(
    "payload",
    [p for p in PAYLOADS if p.isprintable() or "\ud800" not in p],
    ids=short,
)
def test_files_full_of_payloads_load(
    payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    net: Any = load(file_of(payload, tmp_path))
    x = RNG.normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_array_equal(net(burn.tensor(x)).numpy(), np.maximum(x + BIAS, 0))
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


ATTRIBUTES = {
    "Resize": ("mode", ["x", "", "s"]),
    "Pad": ("mode", ["x", "p"]),
    "DepthToSpace": ("mode", ["x"]),
    "MaxPool": ("auto_pad", ["x"]),
}


@pytest.mark.parametrize(
    ("kind", "payload"), list(itertools.product(ATTRIBUTES, PAYLOADS[:10]))
)
def test_string_attributes_select_from_tables(kind: str, payload: str) -> None:
    attribute, inputs = ATTRIBUTES[kind]
    attrs: dict[str, Any] = {attribute: payload}
    if kind == "DepthToSpace":
        attrs["blocksize"] = 2
    if kind == "MaxPool":
        attrs["kernel_shape"] = (2, 2)
    node = RawNode(kind, "", attrs, tuple(n or None for n in inputs), ("y",), "n")
    constants: dict[str, Any] = {
        "s": np.array([1, 1, 2, 2], np.float32),
        "p": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64),
    }
    raw = RawModel(
        RawGraph(
            "g", {"x": Type(burn.float32, (1, 4, 4, 4))}, ("y",), (node,), constants
        ),
        {"": 17},
    )
    with pytest.raises(ValueError, match=f"{kind}.*expected") as caught:
        build(raw)
    assert "node 'n'" in str(caught.value)


def test_the_record_s_name_is_text_in_the_source() -> None:
    source = compile_graph(build(raw_model(PLAIN)), Options(), "a_b.safetensors")
    check_body(source.text.encode())
    assert source.text.count("a_b.safetensors") == 2


@pytest.mark.parametrize("length", (3, 30, 60, 200))
def test_the_first_line_keeps_the_versions_behind_a_long_file_name(length: int) -> None:
    details = "(opset 20, pytorch 2.13.0)"
    line = header(f"{'n' * length} {details}", "0" * 64, "0" * 64, "").splitlines()[0]
    assert len(line) <= 88
    assert line.endswith(f" {details}.")
    assert header("n" * length, "0" * 64, "0" * 64, "").splitlines()[0].isascii()


def test_the_first_line_is_cut_where_the_versions_are_long() -> None:
    line = header(
        f"net.onnx (opset 20, {'p' * 90})", "0" * 64, "0" * 64, ""
    ).splitlines()[0]
    assert len(line) == 88
    assert line.endswith("p....")


def test_a_long_path_in_a_docstring_lacks_its_start() -> None:
    first = ("encoder" * 5, "layers", "11", "attention" * 4)
    assert covered_modules([first]) == f"``...layers.11.{first[-1]}``"
    assert covered_modules([first] * 9) == f"``...layers.11.{first[-1]}`` and 8 more"
    assert covered_modules([("encoder", "layers")]) == "``encoder.layers``"
