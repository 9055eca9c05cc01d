"""Model-local functions with attributes, which may call each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper

from tests.fuzz.generator.builder import Builder
from tests.fuzz.generator.trial import Rejected
from tests.fuzz.generator.values import Value

DOMAIN = "local.functions"
MOST_FUNCTIONS = 3
UNARY = ("Tanh", "Sigmoid", "Abs", "Neg", "Identity", "Relu", "Softsign")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
#: Formal names: those that generated source may use itself, too.
FORMAL = ("x", "y", "self", "class", "a.b", "input", "alpha", "ops", "0", "lambda")


def add_function_calls(builder: Builder) -> None:
    """Add calls of a new function or one that there is, on several operands.

    Raises:
        Rejected: there are no operands, or the calls do not run.
    """
    rng = builder.random
    functions = builder.shared.functions
    if builder.opset < 13:
        raise Rejected("functions of old operators")
    kept = list(functions)
    if not functions or (len(functions) < MOST_FUNCTIONS and rng.random() < 0.6):
        functions.append(_function(builder))
    function = rng.choice(functions)
    try:
        for _ in range(rng.randint(1, 3)):
            _call(builder, function)
    except Rejected:
        if not any(node.domain == DOMAIN for node in builder.root.nodes):
            functions[:] = kept
        raise


def _call(builder: Builder, function: FunctionProto) -> None:
    rng = builder.random
    first = builder.choose(_is_float)
    if first is None:
        raise Rejected("no operand")
    alike = builder.choose(lambda v: _is_float(v) and v.shapes == first.shapes)
    names = [first.name, (alike or first).name][: len(function.input)]
    attrs: dict[str, Any] = {
        name: round(rng.uniform(0.1, 2), 2) for name in function.attribute
    }
    for default in function.attribute_proto:
        if rng.random() < 0.5:
            attrs[default.name] = round(rng.uniform(0.1, 2), 2)
    results = [builder.shared.fresh() for _ in function.output]
    node = helper.make_node(function.name, names, results, domain=DOMAIN, **attrs)
    builder.try_nodes([node], results)


def _is_float(value: Value) -> bool:
    return value.is_tensor and value.dtype == np.float32


def _function(builder: Builder) -> FunctionProto:
    rng = builder.random
    formal = rng.sample(FORMAL, rng.randint(1, 2))
    names, nodes = list(formal), []
    for number in range(rng.randint(1, 5)):
        name = f"t{number}"
        nodes += _inner(builder, rng.choice(names), rng.choice(names), name)
        names.append(name)
    outputs = [names[-1]]
    if rng.random() < 0.3:
        nodes.append(helper.make_node("Neg", [rng.choice(names)], ["second"]))
        outputs.append("second")
    default = rng.random() < 0.4
    return helper.make_function(
        DOMAIN,
        f"{rng.choice(('Block', 'f', 'class', 'Linear'))}_{builder.shared.fresh('')}",
        formal,
        outputs,
        nodes,
        [helper.make_opsetid("", builder.opset), helper.make_opsetid(DOMAIN, 1)],
        [] if default else ["alpha"],
        [helper.make_attribute("alpha", 0.5)] if default else [],
    )


def _inner(builder: Builder, a: str, b: str, result: str) -> list[NodeProto]:
    """The nodes that make ``result``, which may read the function's attribute."""
    rng = builder.random
    way = rng.random()
    if way < 0.2:
        return [_referring("LeakyRelu", [a], result, "alpha")]
    if way < 0.4:
        scale = _referring("Constant", [], f"{result}_scale", "value_float")
        return [scale, helper.make_node("Mul", [a, f"{result}_scale"], [result])]
    if way < 0.55 and builder.shared.functions:
        other = rng.choice(builder.shared.functions)
        results = [result, *("" for _ in other.output[1:])]
        operands = [a, b][: len(other.input)]
        return [_referring(other.name, operands, results, "alpha", DOMAIN)]
    if way < 0.8:
        return [helper.make_node(rng.choice(BINARY), [a, b], [result])]
    return [helper.make_node(rng.choice(UNARY), [a], [result])]


def _referring(
    op: str, inputs: list[str], results: Any, attribute: str, domain: str = ""
) -> NodeProto:
    """A node whose attribute is that of the function which it is in."""
    outputs = [results] if isinstance(results, str) else results
    node = helper.make_node(op, inputs, outputs, domain=domain)
    reference = AttributeProto(
        name=attribute, ref_attr_name="alpha", type=AttributeProto.FLOAT
    )
    node.attribute.append(reference)
    return node
