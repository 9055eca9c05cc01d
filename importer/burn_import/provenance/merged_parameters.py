"""Separates the parameters of norms that an exporter stored as one array.

Exporters store equal arrays once. Those of different norms are equal in a model that
was not trained: ones and zeros. As one array they would be trained as one, and a norm's
weight would be its variance too.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from burn.dtypes import is_float
from burn_import.provenance.path_segments import Path
from burn_import.provenance.weight_owners import is_authored
from burn_ir.graph import Graph, Node

#: The attributes for the operands of norms, after the first operand.
_ATTRIBUTES = {
    "BatchNormalization": ("weight", "bias", "running_mean", "running_var"),
    "GroupNormalization": ("weight", "bias"),
    "InstanceNormalization": ("weight", "bias"),
    "LayerNormalization": ("weight", "bias"),
}
#: A parameter of a module: its path and attribute.
Owner = tuple[Path, str]


def with_own_parameters(graph: Graph) -> Graph:
    """Return ``graph`` with an array for each norm that reads a merged one."""
    if graph.operators.isdisjoint(_ATTRIBUTES):
        return graph
    owners: dict[str, dict[Owner, str]] = defaultdict(dict)
    for node in graph.nodes:
        for name, owner in _owned(graph, node):
            owners[name].setdefault(owner, "")
    merged = {name: own for name, own in owners.items() if len(own) > 1}
    if not merged:
        return graph
    for name, own in merged.items():
        _separate(graph, name, own)
    return graph.with_nodes([_with_own(graph, node, merged) for node in graph.nodes])


def _owned(graph: Graph, node: Node) -> list[tuple[str, Owner]]:
    """Return the stored vectors that a norm reads, with their owners."""
    attributes = () if node.op.domain else _ATTRIBUTES.get(node.op.onnx, ())
    if not node.scope:
        return []
    return [
        (name, (node.scope, attribute))
        for name, attribute in zip(node.inputs[1:], attributes, strict=False)
        if name is not None and _is_merged(graph, name)
    ]


def _is_merged(graph: Graph, name: str) -> bool:
    """Return whether a value is a parameter of one number, as before training."""
    if name in graph.types or name not in graph.constants:
        return False
    if not is_authored(graph, name):
        return False
    array = graph.constants[name]
    if array.ndim != 1 or array.size < 2 or not is_float(array.dtype):
        return False
    return bool((array == array[0]).all())


def _separate(graph: Graph, name: str, own: dict[Owner, str]) -> None:
    """Add an array for each owner of ``name`` but the one that it is named after."""
    paths = {owner: ".".join((*owner[0], owner[1])) for owner in own}
    first = next((owner for owner in own if paths[owner] == name), next(iter(own)))
    for owner in own:
        if owner == first:
            own[owner] = name
        else:
            array = np.array(graph.constants[name])
            own[owner] = graph.constants.add(paths[owner], array)


def _with_own(graph: Graph, node: Node, merged: dict[str, dict[Owner, str]]) -> Node:
    """Return a norm with the arrays that belong to it."""
    owned = dict(_owned(graph, node))
    if owned.keys().isdisjoint(merged):
        return node
    inputs = list(node.inputs)
    attributes = _ATTRIBUTES[node.op.onnx]
    for position, attribute in enumerate(attributes, start=1):
        name = inputs[position] if position < len(inputs) else None
        if name in merged:
            inputs[position] = merged[name].get((node.scope, attribute), name)
    return replace(node, inputs=tuple(inputs))
