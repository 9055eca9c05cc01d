"""Every string field of a file, with every payload."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from onnx import TensorProto, helper

import burn
from burn_import import Options, load
from burn_import.codegen.gate.gate import check
from burn_import.output import header
from burn_import.pipeline import import_model
from tests.importer.hostile.watched import watched
from tests.importer.onnx_files import stored
from tests.importer.payloads import PAYLOADS, strings
from tests.sampling import example_count

RNG = np.random.default_rng(23)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
WEIGHT = RNG.normal(size=(4, 5)).astype(np.float32)
BIAS = RNG.normal(size=(5,)).astype(np.float32)

#: Names of values: equal ones would change the model.
VALUES = [
    *("input", "output", "second output", "weight", "bias", "product", "sum"),
    *("most", "condition", "branch value", "other value", "function value"),
    *("function input", "function output"),
]
#: Other strings, which do not affect the values.
WORDS = [
    *("model domain", "model doc", "producer", "producer version"),
    *("model key", "model value", "graph name", "graph doc", "graph key"),
    *("graph value", "node name", "node doc", "node key", "node value"),
    *("scopes", "classes", "namespace", "call name", "input doc", "input key"),
    *("dim", "denotation", "type denotation", "tensor doc", "tensor key"),
    *("value info", "quantized", "body name", "body doc", "body node"),
    *("function name", "function domain", "function doc", "function node"),
    *("function attribute", "overload", "attribute doc", "opset domain"),
]
SLOTS = [*VALUES, *WORDS]
Slots = Mapping[str, str]


def entry(owner: Any, key: str, value: str) -> None:
    """Add an entry to the metadata of a part of the file."""
    result = owner.metadata_props.add()
    result.key, result.value = key, value


def function(s: Slots) -> onnx.FunctionProto:
    """Return a function that multiplies by its attribute."""
    times = helper.make_node("Constant", [], [s["function value"]])
    attr = times.attribute.add(name="value_float", type=onnx.AttributeProto.FLOAT)
    attr.ref_attr_name = s["function attribute"]
    given, result = s["function input"], s["function output"]
    operands = [given, s["function value"]]
    mul = helper.make_node("Mul", operands, [result], name=s["function node"])
    mul.doc_string = s["function doc"]
    proto = helper.make_function(
        s["function domain"],
        s["function name"],
        [given],
        [result],
        [times, mul],
        [helper.make_opsetid("", 20)],
        [s["function attribute"]],
        doc_string=s["function doc"],
    )
    proto.overload = s["overload"]
    return proto


def branch(s: Slots, kind: str, value: str) -> onnx.GraphProto:
    """Return a body of the ``If``."""
    node = helper.make_node(kind, [s["sum"]], [s[value]], name=s["body node"])
    output = helper.make_empty_tensor_value_info(s[value])
    return helper.make_graph([node], s["body name"], [], [output], [], s["body doc"])


def nodes(s: Slots) -> Iterator[onnx.NodeProto]:
    """Yield ``(x @ w + b) * 1.5`` by a function, ``relu(x @ w + b)`` by an ``If``."""
    product = helper.make_node("MatMul", [s["input"], s["weight"]], [s["product"]])
    product.name, product.doc_string = s["node name"], s["node doc"]
    entry(product, s["node key"], s["node value"])
    entry(product, "pkg.torch.onnx.name_scopes", repr(["", s["scopes"], "mm"]))
    entry(product, "pkg.torch.onnx.class_hierarchy", repr(["a", s["classes"], "mm"]))
    entry(product, "namespace", s["namespace"])
    yield product
    yield helper.make_node("Add", [s["product"], s["bias"]], [s["sum"]])
    most = [s["most"]]
    yield helper.make_node("ReduceMax", [s["input"]], most, keepdims=0)
    yes = [s["condition"]]
    yield helper.make_node("Cast", most, yes, to=TensorProto.BOOL)
    arms = {
        "then_branch": branch(s, "Relu", "branch value"),
        "else_branch": branch(s, "Abs", "other value"),
    }
    yield helper.make_node("If", yes, [s["second output"]], **arms)
    operator, domain = s["function name"], s["function domain"]
    call = helper.make_node(operator, [s["sum"]], [s["output"]], s["call name"])
    call.domain, call.overload = domain, s["overload"]
    attr = call.attribute.add(name=s["function attribute"], f=1.5)
    attr.type, attr.doc_string = onnx.AttributeProto.FLOAT, s["attribute doc"]
    yield call


def hostile_model(s: Slots) -> onnx.ModelProto:
    """Return a model with the strings of ``s`` in its slots."""
    given = helper.make_tensor_value_info(
        s["input"], TensorProto.FLOAT, [s["dim"], 3, 4]
    )
    given.doc_string = s["input doc"]
    given.type.denotation = s["type denotation"]
    given.type.tensor_type.shape.dim[0].denotation = s["denotation"]
    entry(given, s["input key"], s["input doc"])
    weight = stored(s["weight"], WEIGHT)
    weight.doc_string = s["tensor doc"]
    entry(weight, s["tensor key"], s["tensor doc"])
    outputs = [
        helper.make_empty_tensor_value_info(s[name])
        for name in ("output", "second output")
    ]
    graph = helper.make_graph(
        list(nodes(s)),
        s["graph name"],
        [given],
        outputs,
        [weight, stored(s["bias"], BIAS)],
    )
    graph.doc_string = s["graph doc"]
    entry(graph, s["graph key"], s["graph value"])
    graph.value_info.add(name=s["product"], doc_string=s["value info"])
    graph.quantization_annotation.add(tensor_name=s["quantized"])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(s["function domain"], 1)]
    if s["opset domain"] not in ("", "ai.onnx", s["function domain"]):
        opsets.append(helper.make_opsetid(s["opset domain"], 1))
    proto = helper.make_model(
        graph, opset_imports=opsets, ir_version=10, functions=[function(s)]
    )
    proto.producer_name, proto.producer_version = s["producer"], s["producer version"]
    proto.domain, proto.doc_string = s["model domain"], s["model doc"]
    entry(proto, s["model key"], s["model value"])
    return proto


def plain() -> dict[str, str]:
    """Return a harmless string for every slot."""
    return {slot: slot.replace(" ", "_") for slot in SLOTS}


def kinds(text: str) -> list[str]:
    """Return the kinds of the nodes of a module, without their contents."""
    return [type(node).__name__ for node in ast.walk(ast.parse(text))]


def holds(slots: Slots, folder: Path) -> None:
    """Return if a model with these strings gives an ordinary module.

    Its source is ASCII, passes the gate, and computes the same and nothing else.
    """
    path = folder / "model.onnx"
    path.write_bytes(hostile_model(slots).SerializeToString())
    with watched(folder):
        compiled = import_model(path)
        text = header(compiled.origin, compiled.source_sha256, "0" * 64, compiled.text)
        check((text + compiled.text).encode("ascii"))
        net: Any = load(path)
        results = [value.numpy() for value in net(burn.tensor(X))]
    sums = X @ WEIGHT + BIAS
    for value, expected in zip(results, (sums * 1.5, np.maximum(sums, 0)), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def encodable(text: str) -> bool:
    """Return whether protobuf can encode it: no surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


ENCODABLE = [payload for payload in PAYLOADS if encodable(payload)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def short(text: str) -> str:
    """Return the name of a test with a payload."""
    return ascii(text)[:30]


@pytest.mark.parametrize("payload", ENCODABLE, ids=short)
def test_a_payload_in_all_slots_at_once(payload: str, folder: Path) -> None:
    names = {slot: f"{payload}{number}" for number, slot in enumerate(VALUES)}
    holds({**dict.fromkeys(SLOTS, payload), **names}, folder)


@pytest.mark.parametrize("turn", range(len(ENCODABLE)))
def test_every_payload_in_every_slot(turn: int, folder: Path) -> None:
    """Each slot has another payload, and another one in every turn."""
    count = len(ENCODABLE)
    assert len(VALUES) <= count
    holds({s: ENCODABLE[(n + turn) % count] for n, s in enumerate(SLOTS)}, folder)


#: Strings that name modules and classes, and delimit them.
STRUCTURE = {"node name", "scopes", "classes", "namespace", "call name"}


@pytest.mark.parametrize("payload", ENCODABLE[:10], ids=short)
def test_what_names_nothing_changes_no_code(payload: str, folder: Path) -> None:
    texts = []
    replaced = {slot: payload for slot in WORDS if slot not in STRUCTURE}
    for words in ({}, replaced):
        path = folder / "model.onnx"
        proto = hostile_model({**plain(), **words})
        path.write_bytes(proto.SerializeToString())
        texts.append(kinds(import_model(path, Options("Net")).text))
    assert texts[0] == texts[1]


texts = strings.filter(encodable)
functions = texts.filter(lambda text: text not in ("ai.onnx", "ai.onnx.ml"))


@settings(
    max_examples=example_count(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    st.lists(texts, min_size=len(VALUES), max_size=len(VALUES), unique=True),
    st.lists(functions, min_size=len(WORDS), max_size=len(WORDS)),
)
def test_any_string_anywhere(folder: Path, names: list[str], words: list[str]) -> None:
    slots = {
        **dict(zip(VALUES, names, strict=True)),
        **dict(zip(WORDS, words, strict=True)),
    }
    holds(slots, folder)


def strings_of(message: Any, path: str = "") -> Iterator[str]:
    """Yield the string fields of a file, as paths of fields."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        several = value if field.is_repeated else [value]
        if field.type == field.TYPE_STRING:
            yield from (f"{path}.{field.name}" for one in several if one)
        elif field.type == field.TYPE_MESSAGE and (
            field.is_repeated or message.HasField(field.name)
        ):
            for one in several:
                yield from strings_of(one, f"{path}.{field.name}")


def test_every_field_of_the_format_is_a_slot() -> None:
    """A release of onnx that adds a string field fails here."""
    proto = hostile_model({slot: f"{slot}!" for slot in SLOTS})
    owners: dict[str, set[str]] = defaultdict(set)
    for index in strings_of(proto):
        *_, owner, name = index.split(".")
        owners[owner].add(name)
    seen = {name for names in owners.values() for name in names}
    declared = {
        field.name
        for message in onnx.onnx_ml_pb2.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
        if field.type == field.TYPE_STRING
    }
    # Multi-device configuration, which nothing here reads.
    elsewhere = {"configuration_id", "device"}
    assert declared - seen <= elsewhere
