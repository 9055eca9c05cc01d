"""Names that make trouble: keywords, builtins, imported names, Unicode, scopes."""

import random
from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, ModelProto

#: Names that a generated module may use itself, or that are no identifiers.
NAMES = (
    *("class", "for", "None", "True", "lambda", "if", "def", "import", "return"),
    *("self", "Self", "super", "print", "list", "range", "len", "int", "float", "zip"),
    *("burn", "ops", "nn", "np", "math", "Tensor", "Module", "Net", "fuzz", "x", "y"),
    *("__init__", "__call__", "__class__", "load", "_", "__", "0", "1x", "a b", "a-b"),
    *("weight", "bias", "scale", "shape", "batch", "seq", "size", "dtype", "axis"),
    *("größe", "数", "é", "ﬁ", "K", "x.y", "x/y", "x:0", "onnx::MatMul_1"),
    *("layer.0.weight", "layer.1.weight", "model.layer.bias", "input", "output"),
    *("conv1.weight", "conv1.bias", "/conv1/Conv_output_0", "state", "parameters"),
    *("'", '"', "\\", "{x}", "%s", "#", "a\nb", "type", "id", "match", "case"),
)


def rename(model: ModelProto, rng: random.Random) -> dict[str, str]:
    """Give the values of ``model`` other names; return the new name of each.

    Empty names, which stand for omitted operands, stay.
    """
    style = rng.random()
    old = list(dict.fromkeys(_names(model.graph)))
    share = 0.0 if style < 0.35 else rng.choice([0.1, 0.4, 0.9])
    free = rng.sample(NAMES, len(NAMES))
    new = {}
    for name in old:
        strange = bool(free) and rng.random() < share
        new[name] = free.pop() if strange else name
    _apply(model.graph, new)
    for number, node in enumerate(model.graph.node):
        node.name = _node_name(rng, style, number, node.op_type)
    return new


def _node_name(rng: random.Random, style: float, number: int, op: str) -> str:
    if style < 0.3:
        return ""
    if style < 0.6:
        return f"{op}_{number}"
    scope = "/".join(
        rng.choice(("layer", "block.0", "block.1", "self", "class", "n1"))
        for _ in range(rng.randint(1, 3))
    )
    return f"/{scope}/{op}_{number}"


def _names(graph: GraphProto) -> Iterator[str]:
    yield from (i.name for i in graph.input)
    yield from (i.name for i in graph.initializer)
    yield from (name for node in graph.node for name in node.output if name)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _names(attribute.g)


def _apply(graph: GraphProto, new: dict[str, str]) -> None:
    for info in (*graph.input, *graph.initializer, *graph.output, *graph.value_info):
        info.name = new.get(info.name, info.name)
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _apply(attribute.g, new)
