"""Judging the nodes of a graph one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto
from onnx.inliner import inline_local_functions

from burn_ir import ModelError
from tests.conformance.run import built
from tests.fuzz.compare import difference
from tests.fuzz.contents import Contents
from tests.fuzz.errors.rounding import noise_of_rounding
from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.builder import free_names
from tests.fuzz.passes import results
from tests.fuzz.rules.close import has_rounded_zeros
from tests.fuzz.rules.explained import explanation
from tests.fuzz.rules.not_finite import is_not_finite, not_finite_explanation
from tests.fuzz.shrink import part_of

#: Errors on operands that are not finite, as of a Range to NaN.
REFUSALS = (
    ArithmeticError,
    LookupError,
    MemoryError,
    ModelError,
    RuntimeError,
    TypeError,
    ValueError,
)


def are_differences_explained(case: FuzzCase, feeds: Mapping[str, Any]) -> bool:
    """Return whether rules explain all nodes that differ from onnxruntime's.

    If none does, a rule about what rounding decides on has to match a node, or a value
    is a rounding of 0, which decides on its product with an infinity. Each node runs
    alone, on what onnxruntime gives its operands for ``feeds``. Calls of
    functions are inlined before, and nodes are joined by the values that onnxruntime
    does not show: a rule for one of them is enough.
    """
    model = without_functions(case.model)
    contents = Contents.of(replace(case, model=model), [*case.feeds[:2], feeds])
    if contents is None:
        return False
    values = contents.runs[2]
    groups = node_groups(contents)
    different = [g for g in groups if _differs(contents, g)]
    if not different:  # what noise on its operands would hide of a node
        different = [g for g in groups if _differs(contents, g, noisy=False)]
    if not different:  # each node is right: rounding adds up before one of these
        return any(
            _is_close(node, values) for group in groups for node in group
        ) or any(map(_is_rounded_zero, values.values()))
    return all(
        any(
            not_finite_explanation(node, [values.get(n) for n in node.input])
            for node in group
        )
        for group in different
    )


def _is_rounded_zero(value: Any) -> bool:
    return isinstance(value, np.ndarray) and has_rounded_zeros(None, [value])


def _is_close(node: NodeProto, values: Mapping[str, Any]) -> bool:
    """Return whether rounding of its operands tells what a node makes."""
    if not all(name in values for name in node.input if name):
        return False
    return explanation(node, [values.get(name) for name in node.input]) is not None


def without_functions(model: ModelProto) -> ModelProto:
    """``model`` with its local functions inlined.

    Defaults of attributes are written into the calls before, which onnx's inliner
    leaves out.
    """
    if not model.functions:
        return model
    filled = ModelProto()
    filled.CopyFrom(model)
    defaults = {(f.domain, f.name): f.attribute_proto for f in filled.functions}
    _fill(filled.graph.node, defaults)
    for function in filled.functions:
        _fill(function.node, defaults)
    return inline_local_functions(filled)


def _fill(nodes: Sequence[NodeProto], defaults: Mapping[Any, Any]) -> None:
    for node in nodes:
        given = {a.name for a in node.attribute}
        wanted = defaults.get((node.domain, node.op_type), ())
        node.attribute.extend(a for a in wanted if a.name not in given)
        for attribute in node.attribute:
            _fill(attribute.g.node, defaults)


def node_groups(contents: Contents) -> list[list[NodeProto]]:
    """The nodes of a graph in groups that only shown values go in and out of.

    Constants belong to no group.
    """
    values = contents.runs[2]
    groups: list[tuple[list[NodeProto], set[str]]] = []
    for node in contents.model.graph.node:
        if _is_constant(node):
            continue
        names = {n for n in (*free_names([node]), *node.output) if n}
        constants = {n for c in _constants(contents, [node]) for n in c.output}
        hidden = {n for n in names - constants if n not in values}
        joined = [group for group in groups if group[1] & hidden]
        groups = [group for group in groups if not group[1] & hidden]
        nodes = [n for group in joined for n in group[0]]
        groups.append(([*nodes, node], hidden.union(*(g[1] for g in joined))))
    return [nodes for nodes, _ in groups]


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and not node.domain


def _constants(contents: Contents, nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """The constants that ``nodes`` read."""
    read = set(free_names(nodes))
    return [
        node
        for node in contents.model.graph.node
        if _is_constant(node) and read.intersection(node.output)
    ]


def _differs(
    contents: Contents, nodes: Sequence[NodeProto], noisy: bool = True
) -> bool:
    """Return whether nodes with values that are not finite differ from onnxruntime's.

    They may differ by what noise on their operands does, if ``noisy``.
    """
    values = contents.runs[2]
    created = [n for node in nodes for n in node.output]
    names = [n for n in (*free_names(nodes), *created) if n in values]
    if not any(is_not_finite(values[n]) for n in names):
        return False
    wanted = [n for n in created if n in values]
    part = part_of(contents, [*_constants(contents, nodes), *nodes], wanted)
    return part is not None and _is_different(part, values, 10 if noisy else 0)


def _is_different(part: FuzzCase, values: Mapping[str, Any], factor: float) -> bool:
    outputs = [o.name for o in part.model.graph.output]
    noise = [0.0] * len(outputs)
    if factor:
        inside = noise_of_rounding(part, part.feeds[2])
        own = [factor * part.noise[name] for name in outputs]
        noise = [max(pair) for pair in zip(own, inside, strict=True)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            graph = built(part.model, Path(folder))
            got = results(graph, list(part.feeds[2].values()))
    except REFUSALS:
        return True
    return difference(got, [values[name] for name in outputs], noise) is not None
