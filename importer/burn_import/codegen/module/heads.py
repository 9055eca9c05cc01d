"""Classification heads: final layers whose number of outputs can vary."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from burn.dtypes import is_float
from burn_import.codegen.module.constructor_calls import ConstructorCalls, Slot
from burn_import.provenance.path_segments import Path
from burn_import.structure import ModuleNode, Tree
from burn_import.structure.module_tree import layers_of
from burn_ir.dim import symbol
from burn_ir.error_context import OR_MISSING
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer_op
from burn_ir.types import Type

#: The result axis whose size is the second argument, by layer.
AXES = {"Linear": -1, "Conv1d": 1, "Conv2d": 1, "Conv3d": 1}
#: The symbolic number of classes during type inference.
CLASSES = symbol("?classes")
_SCORES = re.compile(r"logit|prob|class|label|score|\bcls", re.IGNORECASE)
_HEADS = frozenset({"classifier", "fc", "head", "heads", "lm_head", "classification"})
#: Maximum number of nodes after a final layer.
MOST_NODES = 12


@dataclass(frozen=True)
class Head:
    """A layer whose output size only affects dimensions of the model's outputs."""

    path: Path
    slot: Slot
    #: Class names of modules that compute values with the dimension.
    owners: frozenset[str]
    #: The model outputs with the dimension.
    outputs: frozenset[str]

    @property
    def has_classes(self) -> bool:
        """Whether names suggest that the results are class scores."""
        return bool(_HEADS & set(self.path)) or any(map(_SCORES.search, self.outputs))


def variable_heads(calls: ConstructorCalls, tree: Tree) -> Iterator[Head]:
    """Yield the final layers whose output size can vary."""
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
    """Return the constructor argument with the output size of a layer, or None."""
    chain = calls.chain_to(path)
    if not chain or len(chain[-1].call.args) < 2:
        return None
    number = calls.literal(Slot(chain[-1].owner, chain[-1].call, 1), chain[:-1])
    return number[0] if number and number[1] == size else None


def free_values(graph: Graph, node: Node, axis: int, size: int) -> dict[str, Type]:
    """Return the types of the values that depend on a layer with any output size.

    Empty if a dependent value changes in more than that dimension, or is computed with
    weights of that size (a norm): then something else depends on the size.
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
            if _has_weight_of(size, graph, reader):
                return {}
            results = _results(graph, reader, types)
            if not results or len(types) > MOST_NODES:
                return {}
            types.update(results)
            pending += results
    return types


def _has_weight_of(size: int, graph: Graph, node: Node) -> bool:
    """Return whether a stored array that a node reads has an axis of this size."""
    names = (name for name in node.inputs if name is not None)
    arrays = (graph.constants[name] for name in names if name in graph.constants)
    return any(size in array.shape and is_float(array.dtype) for array in arrays)


def _results(
    graph: Graph, node: Node, types: Mapping[str, Type]
) -> dict[str, Type] | None:
    """Return the result types of a node, or None if one lacks the dimension."""
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
    """Return whether two types differ in exactly one dimension, ``CLASSES``."""
    if before is None or before.shape is None or after.shape is None:
        return False
    if before.dtype != after.dtype or len(before.shape) != len(after.shape):
        return False
    pairs = zip(before.shape, after.shape, strict=True)
    changed = [new for old, new in pairs if old != new]
    return changed == [CLASSES]
