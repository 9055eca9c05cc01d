"""Extends the previous concatenation where a list of features grows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from burn_import.rewriting.graphs import common_scope
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Concat

#: The least number of concatenations in a growing list.
_SHORTEST = 3


@dataclass(frozen=True)
class _Extension:
    """A concatenation of another one's operands and one more, first or last."""

    base: Node
    node: Node
    inputs: tuple[str | None, ...]


def growing_concats(graph: Graph) -> Graph:
    """Return ``graph`` with ``concat([concat([x, y]), z])`` for longer lists.

    It replaces ``concat([x, y, z])`` where ``concat([x, y])`` exists, so that all steps
    of a dense block have the same code: ``x = concat([x, layer(x)])``. All steps of a
    list get their innermost common scope.
    """
    lists = _lists(_extensions(graph.nodes))
    if not lists:
        return graph
    replaced: dict[int, Node] = {}
    for extensions in lists:
        nodes = [extensions[0].base, *(step.node for step in extensions)]
        scope, classes = common_scope(*nodes)
        inputs = [nodes[0].inputs, *(step.inputs for step in extensions)]
        for node, operands in zip(nodes, inputs, strict=True):
            replaced[id(node)] = replace(
                node, inputs=operands, scope=scope, classes=classes
            )
    return graph.with_nodes([replaced.get(id(node), node) for node in graph.nodes])


def _extensions(nodes: Sequence[Node]) -> Mapping[int, _Extension]:
    """Return the concatenations that extend an earlier one, by the earlier one."""
    concats: dict[tuple[int, tuple[str | None, ...]], Node] = {}
    extensions: dict[int, _Extension] = {}
    for node in nodes:
        if not isinstance(node.op, Concat):
            continue
        axis, inputs = node.op.axis, node.inputs
        concats.setdefault((axis, inputs), node)
        for rest, last in ((inputs[:-1], True), (inputs[1:], False)):
            base = concats.get((axis, rest))
            if base is not None and len(rest) > 1 and id(base) not in extensions:
                value = (base.output,)
                operands = (*value, inputs[-1]) if last else (inputs[0], *value)
                extensions[id(base)] = _Extension(base, node, operands)
                break
    return extensions


def _lists(extensions: Mapping[int, _Extension]) -> list[list[_Extension]]:
    """Return the extensions of each growing list, in order."""
    inner = {id(step.node) for step in extensions.values()}
    lists = []
    for first in extensions:
        if first in inner:
            continue
        steps, at = [], first
        while at in extensions:
            steps.append(extensions[at])
            at = id(steps[-1].node)
        if len(steps) + 1 >= _SHORTEST:
            lists.append(steps)
    return lists
