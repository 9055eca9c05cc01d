"""Small ONNX files: operators on large constants of one element, at any depth."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.importer.onnx_files import graph, model, stored

#: Shapes of the constants, which are broadcasts of one element.
SHAPES = ((2**31,), (2**15, 2**16), (2**10, 2**10, 2**10), (4096, 4096))
DTYPES = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(int64)": TensorProto.INT64,
    "tensor(bool)": TensorProto.BOOL,
}
#: Values of required attributes.
CHOICES: Mapping[Any, Sequence[Any]] = {
    onnx.defs.OpSchema.AttrType.INT: (0, 1, 2, 7),
    onnx.defs.OpSchema.AttrType.INTS: ([1, 1], [2, 2], [3, 3]),
    onnx.defs.OpSchema.AttrType.FLOAT: (1.0,),
    onnx.defs.OpSchema.AttrType.STRING: ("linear",),
}
OPSET = 21
DOMAIN = "own"


def schemas() -> list[onnx.defs.OpSchema]:
    """Return the operators of the opset that have no bodies, by name."""
    newest: dict[str, onnx.defs.OpSchema] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain or schema.since_version > OPSET:
            continue
        old = newest.get(schema.name)
        if old is None or schema.since_version > old.since_version:
            newest[schema.name] = schema
    graphs = onnx.defs.OpSchema.AttrType.GRAPH
    return [
        schema
        for _, schema in sorted(newest.items())
        if not schema.deprecated
        and all(a.type != graphs for a in schema.attributes.values())
        and all(a.type in CHOICES for a in schema.attributes.values() if a.required)
    ]


def dtype_of(schema: onnx.defs.OpSchema, rng: random.Random) -> int:
    """Return an element type of the first operand, float if it accepts none of ours."""
    taken = sorted(schema.inputs[0].types & DTYPES.keys()) if schema.inputs else []
    return DTYPES[rng.choice(taken)] if taken else TensorProto.FLOAT


def nodes_of(schema: onnx.defs.OpSchema, rng: random.Random) -> list[onnx.NodeProto]:
    """Return nodes that compute ``y`` with the operator from constants ``one`` etc."""
    dtype = dtype_of(schema, rng)
    required = {n: a for n, a in schema.attributes.items() if a.required}
    attrs = {name: rng.choice(CHOICES[a.type]) for name, a in required.items()}
    if schema.name == "Einsum":
        attrs["equation"] = "ij,jk->ik"
    count = max(1, schema.min_input)
    names = ("e", "e", "e", "size", "k", "one")
    operands = ["e", *(rng.choice(names) for _ in range(count - 1))]
    results = [f"r{number}" for number in range(max(1, schema.min_output))]
    return [
        helper.make_node("Expand", ["one", "size"], ["expanded"]),
        helper.make_node("Cast", ["expanded"], ["e"], to=dtype),
        helper.make_node(schema.name, operands, results, **attrs),
        helper.make_node("Identity", ["r0"], ["y"]),
    ]


def in_branches(nodes: list[onnx.NodeProto], depth: int) -> list[onnx.NodeProto]:
    """Return nodes that compute ``y`` in ``depth`` nested ``If`` branches."""
    for level in range(depth):
        bodies = {
            f"{side}_branch": helper.make_graph(
                nodes, f"{side}{level}", [], [helper.make_empty_tensor_value_info("y")]
            )
            for side in ("then", "else")
        }
        chosen = helper.make_node("If", ["flag"], [f"v{level}"], **bodies)
        nodes = [chosen, helper.make_node("Identity", [f"v{level}"], ["y"])]
    return nodes


def in_function(nodes: list[onnx.NodeProto]) -> onnx.FunctionProto:
    """Return a function of the constants that computes ``y``."""
    opsets = [helper.make_opsetid("", OPSET)]
    names = ["one", "size", "k"]
    return helper.make_function(DOMAIN, "Own", names, ["y"], nodes, opsets)


def hostile(
    schema: onnx.defs.OpSchema, shape: Sequence[int], rng: random.Random
) -> onnx.ModelProto:
    """Return a model of an operator: plain, in branches, or in a function."""
    nodes = nodes_of(schema, rng)
    arrays = (
        *(stored("one", np.array([0.5], np.float32)), stored("k", np.array([1]))),
        stored("size", np.array(shape)),
    )
    inputs = {"x": ["n"]}
    index = rng.randrange(3)
    if index == 0:
        return model(graph(nodes, inputs, ("y",), arrays), OPSET)
    if index == 1:
        nodes = in_branches(nodes, 3)
        proto = graph(nodes, inputs, ("y",), arrays)
        proto.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
        return model(proto, OPSET)
    call = helper.make_node("Own", ["one", "size", "k"], ["y"], domain=DOMAIN)
    proto = graph([call], inputs, ("y",), arrays)
    result = model(proto, OPSET, functions=[in_function(nodes)])
    result.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return result


def sample(count: int, seed: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield ``count`` named models; all operators occur before one is repeated."""
    rng = random.Random(seed)
    names = schemas()
    order: list[onnx.defs.OpSchema] = []
    for number in range(count):
        order = order or rng.sample(names, len(names))
        schema, shape = order.pop(), rng.choice(SHAPES)
        yield f"{number:04d}_{schema.name}", hostile(schema, shape, rng)
