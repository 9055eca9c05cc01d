"""Removes terms that always hold from the conditions of attention masks."""

from dataclasses import replace

from burn.dtypes import bool_
from burn_import.passes.attention.mask_conditions import Conditions, broadcasts
from burn_import.provenance.trainable import is_kept
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.attention import Attention
from burn_ir.ops.elementwise import Add
from burn_ir.ops.logic import Where

#: The position of the mask among the operands of attention.
MASK = 3


def needed_conditions(graph: Graph) -> Graph:
    """Return ``graph`` without terms of masks, and masks, that are True everywhere.

    PyTorch's exporters compare positions with 0. Such a term only widens the mask to
    the shape that scores have anyway. Attention that is recovered drops it too; this
    is for attention of other forms, as with quantizers between its products.
    """
    if graph.operators.isdisjoint(("And", "Attention")):
        return graph
    conditions = Conditions(Dataflow(graph))
    return with_nodes(graph, [_rewrite(node, conditions) for node in graph.nodes])


def _rewrite(node: Node, conditions: Conditions) -> Node:
    if isinstance(node.op, Where):
        return _with_narrow_condition(node, conditions)
    if not isinstance(node.op, Attention) or len(node.inputs) <= MASK:
        return node
    mask, shape = node.inputs[MASK], _scores(node, conditions.flow)
    if mask is None or not shape:
        return node
    if not broadcasts(conditions.flow.extents(mask), shape):
        return node
    inputs = list(node.inputs)
    if _excludes_nothing(mask, conditions.flow):
        inputs[MASK:] = [None, *inputs[MASK + 1 :]] if inputs[MASK + 1 :] else []
    else:
        inputs[MASK] = conditions.needed(mask, shape)
    return node if tuple(inputs) == node.inputs else replace(node, inputs=tuple(inputs))


def _excludes_nothing(mask: str, flow: Dataflow) -> bool:
    """Return whether a mask is a constant of the program that is True everywhere."""
    array = flow.stored(mask)
    if array is None or is_kept(flow.graph, mask):
        return False
    return array.dtype == bool_ and bool(array.all())


def _with_narrow_condition(node: Node, conditions: Conditions) -> Node:
    """Narrow the condition of a ``Where`` of two numbers, if only additions read it."""
    flow, graph = conditions.flow, conditions.flow.graph
    condition, *numbers = node.inputs
    stored = [flow.stored(name) for name in numbers]
    readers = graph.users.get(node.output, ())
    is_plain = all(array is not None and array.size == 1 for array in stored)
    if condition is None or not is_plain or not readers or node.output in graph.results:
        return node
    needed = {_needed(condition, node.output, user, conditions) for user in readers}
    if len(needed) > 1 or condition in needed:
        return node
    return replace(node, inputs=(needed.pop(), *numbers))


def _needed(condition: str, mask: str, user: Node, conditions: Conditions) -> str:
    """Return the condition that one reader of the mask needs."""
    others = [name for name in user.inputs if name != mask]
    if not isinstance(user.op, Add) or len(others) != 1:
        return condition
    shape = conditions.flow.extents(others[0])
    if not broadcasts(conditions.flow.extents(mask), shape):
        return condition  # the mask gives the sum some of its shape
    return conditions.needed(condition, shape)


def _scores(node: Node, flow: Dataflow) -> tuple[Dim, ...]:
    """Return the shape of the scores of four-dimensional queries and keys."""
    query, key = (flow.extents(name) for name in node.inputs[:2])
    is_split = len(query) == len(key) == 4
    return (*query[:-1], key[-2]) if is_split else ()
