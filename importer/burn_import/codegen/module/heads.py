"""The layer that makes the scores of classes, where their number is free."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from burn_import.codegen.module.constructor_calls import ConstructorCalls, Slot
from burn_import.provenance.path_segments import Path
from burn_import.structure import ModuleNode, Tree
from burn_import.structure.module_tree import layers_of
from burn_ir.dim import symbol
from burn_ir.error_context import OR_MISSING
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer_op
from burn_ir.types import Type

#: Layers whose second argument is the size of one axis of the result, by that axis.
AXES = {"Linear": -1, "Conv1d": 1, "Conv2d": 1, "Conv3d": 1}
#: What stands for the number of classes while types are inferred.
CLASSES = symbol("?classes")
_SCORES = re.compile(r"logit|prob|class|label|score|\bcls", re.IGNORECASE)
_HEADS = frozenset({"classifier", "fc", "head", "heads", "lm_head", "classification"})
#: After so many nodes a layer is not the last one.
MOST_NODES = 12


@dataclass(frozen=True)
class Head:
    """A layer whose number of results is an extent of outputs, and of nothing else."""

    path: Path
    slot: Slot
    #: The parts whose nodes compute values of that extent.
    owners: frozenset[str]
    #: The outputs of the model that have the extent.
    outputs: frozenset[str]

    @property
    def has_classes(self) -> bool:
        """Whether names tell that the results are scores of classes."""
        return bool(_HEADS & set(self.path)) or any(map(_SCORES.search, self.outputs))


def heads(calls: ConstructorCalls, tree: Tree) -> Iterator[Head]:
    """Yield the layers that end a model and whose number of results is free."""
    graph = tree.root.graph
    owners = {
        id(node): part
        for part in tree.parts
        if part.graph is graph
        for node in part.items
        if isinstance(node, Node)
    }
    for part in tree.parts:
        for path, node, layer in layers_of(part) if part.graph is graph else ():
            axis = AXES.get(layer.name)
            if axis is None or layer.args[1] < 2 or id(node) not in owners:
                continue
            values = free_values(graph, node, axis, layer.args[1])
            outputs = frozenset(set(values) & set(graph.results))
            slot = _slot(calls, (*part.path, *path), layer.args[1])
            if outputs and slot is not None:
                yield Head(
                    (*part.path, *path), slot, _owners(values, graph, owners), outputs
                )


def _owners(
    values: Mapping[str, Type], graph: Graph, owners: Mapping[int, ModuleNode]
) -> frozenset[str]:
    nodes = (graph.producers[name] for name in values)
    return frozenset(owners[id(n)].class_name for n in nodes if id(n) in owners)


def _slot(calls: ConstructorCalls, path: Path, size: int) -> Slot | None:
    """Return where the number of a layer's results stands."""
    chain = calls.chain_to(path)
    if not chain or len(chain[-1].call.args) < 2:
        return None
    number = calls.literal(Slot(chain[-1].owner, chain[-1].call, 1), chain[:-1])
    return number[0] if number and number[1] == size else None


def free_values(graph: Graph, node: Node, axis: int, size: int) -> dict[str, Type]:
    """Return the types of all values of a layer with any number of results.

    Empty if one of the values that depend on the layer has another type than before
    but for that extent: something else depends on the number.
    """
    before = graph.type(node.output)
    if before is None or before.shape is None or before.shape[axis] != size:
        return {}
    dims = list(before.shape)
    dims[axis] = CLASSES
    types = {node.output: before.with_shape(dims)}
    pending = [node.output]
    while pending:
        for reader in graph.users.get(pending.pop(), ()):
            if reader.output in types:
                continue
            results = _results(graph, reader, types)
            if not results or len(types) > MOST_NODES:
                return {}
            types.update(results)
            pending += results
    return types


def _results(
    graph: Graph, node: Node, types: Mapping[str, Type]
) -> dict[str, Type] | None:
    """Return the types of the results of a node, None unless all have the extent."""
    if node.op.bodies():
        return None
    operands = [types.get(name or "") or graph.type(name) for name in node.inputs]
    try:
        results = infer_op(node.op, operands)
    except OR_MISSING:
        return None
    named = {
        name: result
        for name, result in zip(node.outputs, results, strict=False)
        if name is not None
    }
    is_free = all(_is_free(graph.type(name), result) for name, result in named.items())
    return named if is_free else None


def _is_free(before: Type | None, after: Type) -> bool:
    """Return whether two types differ in one extent, which is that of the classes."""
    if before is None or before.shape is None or after.shape is None:
        return False
    if before.dtype != after.dtype or len(before.shape) != len(after.shape):
        return False
    pairs = zip(before.shape, after.shape, strict=True)
    changed = [new for old, new in pairs if old != new]
    return changed == [CLASSES]


def is_number_in(text: str, number: int) -> bool:
    """Return whether the source ``text`` has a number."""
    return re.search(rf"(?<![\w.]){number}(?![\w.])", text) is not None
