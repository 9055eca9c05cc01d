"""Nodes of every operator, from the Hypothesis strategies that the laws use."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
from hypothesis import given, settings
from onnx import AttributeProto, NodeProto, helper

from burn_ir import RawGraph, operators
from tests.fuzz.generator.builder import Builder
from tests.fuzz.generator.frozen import choose_operator
from tests.fuzz.generator.trial import Rejected
from tests.fuzz.generator.values import Value
from tests.laws.models import onnx_attribute
from tests.strategies import Example, cases, examples
from tests.strategies.registry import Key, Maybe

#: Random operators, whose values cannot be compared.
RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"}
    | {"RandomUniform", "RandomUniformLike", "Dropout"}
)
#: Operators with bodies, which :mod:`tests.fuzz.generator.control` makes.
WITH_BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap", "Gradient"})
#: Domains of which nodes are made, with the share of nodes.
DOMAINS = {"": 20, "com.microsoft": 1, "ai.onnx.ml": 1}
VERSIONS = {"com.microsoft": 1, "ai.onnx.ml": 5}
#: Profiles that choose operators from a fixed table.
FROZEN = frozenset({"operators", "types"})
#: How many bytes of randomness one example may use.
ENTROPY = 4096
ATTEMPTS = 4


@cache
def _drawer(key: Key, version: int) -> tuple[Callable[[bytes], Any], list[Example]]:
    drawn: list[Example] = []

    @settings(database=None)
    @given(examples(key, version))
    def keep(example: Example) -> None:
        drawn.append(example)

    return keep.hypothesis.fuzz_one_input, drawn  # type: ignore[attr-defined]


def draw_example(key: Key, version: int, rng: random.Random) -> Example:
    """A random example of an operator at one version.

    Raises:
        Rejected: the randomness made none.
    """
    draw, drawn = _drawer(key, version)
    drawn.clear()
    draw(rng.randbytes(ENTROPY))
    if not drawn:
        raise Rejected("no example")
    return drawn[0]


@cache
def available(domain: str, opset: int) -> tuple[tuple[Key, int], ...]:
    """The operators of a domain at an opset, each with its version there."""
    results = []
    for key, op in sorted(operators().items()):
        versions = [v for v in op.versions if v <= opset]
        if key[0] != domain or key[1] in RANDOM | WITH_BODIES or key not in cases():
            continue
        if domain == "" and not _is_current(key[1], opset):
            continue
        if versions and op.deterministic:
            results.append((key, max(versions)))
    return tuple(results)


def _is_current(name: str, opset: int) -> bool:
    """Return whether ONNX has an operator at an opset, and does not deprecate it."""
    if not onnx.defs.has(name, opset, ""):
        return False
    return not onnx.defs.get_schema(name, opset, "").deprecated


def add_catalog_node(builder: Builder) -> None:
    """Add a node of a random operator, its operands from the graph where they fit.

    Raises:
        Rejected: no attempt ran.
    """
    key, version = _operator(builder)
    example = draw_example(key, version, builder.random)
    if example.captured or any(isinstance(v, RawGraph) for v in example.attrs.values()):
        raise Rejected("bodies are made elsewhere")
    for attempt in range(ATTEMPTS):
        if _attempt(builder, key, example, attempt):
            return
    raise Rejected("no attempt ran")


def _operator(builder: Builder) -> tuple[Key, int]:
    """A random operator and its version, of the table of a profile that has one."""
    rng = builder.random
    if builder.shared.profile in FROZEN:
        key = choose_operator(builder.shared.step_key(), builder.opsets)
        opset = builder.opsets[key[0]]
        op = operators().get(key)
        versions = [v for v in op.versions if v <= opset] if op else []
        if not versions or key not in cases():
            raise Rejected("an operator without examples")
        return key, max(versions)
    domains = [d for d in DOMAINS if d in builder.opsets]
    (domain,) = rng.choices(domains, [DOMAINS[d] for d in domains])
    return rng.choice(available(domain, builder.opsets[domain]))


def _attempt(builder: Builder, key: Key, example: Example, attempt: int) -> bool:
    snapshot = builder.snapshot()
    try:
        names = [
            _operand(builder, example, i, key, attempt)
            for i in range(len(example.inputs))
        ]
        results = [builder.shared.fresh() for _ in range(example.outputs)]
        attrs = {k: onnx_attribute(v) for k, v in example.attrs.items()}
        node = helper.make_node(key[1], names, results, domain=key[0], **attrs)
        _drop_empty_lists(node, attrs)
        builder.try_nodes([node], results)
    except Rejected:
        builder.restore(snapshot)
        return False
    return True


def _drop_empty_lists(node: NodeProto, attrs: dict[str, Any]) -> None:
    """Give attributes that are empty lists the type of lists of integers."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.UNDEFINED:
            attribute.type = AttributeProto.INTS


def _operand(
    builder: Builder, example: Example, place: int, key: Key, attempt: int
) -> str:
    """The name of the operand at ``place``: of the graph, or with its contents."""
    operand = example.inputs[place]
    if operand is None:
        return ""
    if isinstance(operand, Maybe):
        raise Rejected("optional values are made elsewhere")
    if isinstance(operand, list):
        _check_plain(*operand)
        names = [_source(builder, item, True).name for item in operand]
        if not names:
            raise Rejected("an empty list")
        return builder.try_node("SequenceConstruct", names)[0].name
    _check_plain(operand)
    if place in example.always_stored:
        return builder.add_constant(operand).name
    last = attempt == ATTEMPTS - 1
    if not last and _is_data(operand, place, example):
        value = _from_graph(builder, operand, attempt)
        if value is not None:
            return value.name
    return _source(builder, operand, place > 0).name


def _check_plain(*arrays: Any) -> None:
    for array in arrays:
        if array.dtype.name not in _PLAIN and array.dtype.kind not in "US":
            raise Rejected("a dtype that NumPy has not")


def _is_data(operand: Any, place: int, example: Example) -> bool:
    if place in example.discrete or operand.dtype == object:
        return False
    return operand.dtype.kind in "fb" or place == 0


def _from_graph(builder: Builder, operand: Any, attempt: int) -> Value | None:
    """A value of the graph that may stand for ``operand``."""
    rng = builder.random

    def same_dtype(value: Value) -> bool:
        return value.is_tensor and value.dtype == operand.dtype

    if rng.random() < 0.12:
        return None
    exact = builder.choose(lambda v: same_dtype(v) and v.has_shape(operand.shape))
    if exact is not None and rng.random() < 0.5:
        return exact
    if attempt == 0 or (attempt == 1 and rng.random() < 0.5):
        alike = builder.choose(lambda v: same_dtype(v) and v.rank == operand.ndim)
        result = alike or builder.choose(same_dtype)
        if result is not None:
            return result
    if exact is not None:
        return exact
    return _reshaped(builder, operand, same_dtype)


def _reshaped(
    builder: Builder, operand: Any, fits: Callable[[Value], bool]
) -> Value | None:
    """A value of the graph brought to the shape of ``operand``, whatever it has."""
    source = builder.choose(fits)
    if source is None or operand.dtype.kind not in "f" or operand.size == 0:
        return None
    flat = builder.add_constant(np.array([-1], np.int64)).name
    target = builder.add_constant(np.array(operand.shape, np.int64)).name
    filler = builder.add_constant(operand.ravel()).name
    names = [builder.shared.fresh() for _ in range(4)]
    nodes = [
        helper.make_node("Reshape", [source.name, flat], names[:1]),
        helper.make_node("Concat", [names[0], filler], [names[1]], axis=0),
        _first_elements(builder, names[1], names[2], operand.size),
        helper.make_node("Reshape", [names[2], target], [names[3]]),
    ]
    return builder.try_nodes(nodes, [names[3]])[0]


def _first_elements(builder: Builder, name: str, result: str, count: int) -> NodeProto:
    if builder.opset < 10:
        return helper.make_node("Slice", [name], [result], starts=[0], ends=[count])
    ends = [builder.add_constant(np.array([n], np.int64)).name for n in (0, count)]
    return helper.make_node("Slice", [name, *ends], [result])


def _source(builder: Builder, array: Any, stored: bool) -> Value:
    """A value with the contents of ``array``: more likely constant if ``stored``."""
    text = array.dtype == object or array.dtype.kind in "US"
    array = array.astype(object) if text else array
    if builder.random.random() < (0.75 if stored else 0.3):
        return builder.add_constant(array)
    return builder.add_input(array)


_PLAIN = frozenset(
    {"bool", "float16", "float32", "float64", "object"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
