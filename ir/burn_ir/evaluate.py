"""Running a graph by its operators' ``lower``: for folding, and as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burn import Tensor
from burn.backend.cpu import HOST
from burn_ir.graph import Graph, Node
from burn_ir.op import Branch
from burn_ir.static import Value

Watch = Callable[[Node, tuple[Value, ...]], None]


def evaluate(
    graph: Graph, inputs: Sequence[Value], watch: Watch | None = None
) -> list[Value]:
    """The graph's outputs for ``inputs`` in the order of ``graph.inputs``.

    A default stands in for an input that is None or missing at the end. ``watch`` sees
    every node with its results, in order.
    """
    values = dict(zip(graph.inputs, inputs, strict=False))

    def read(name: str | None) -> Value:
        if name is None:
            return None
        value = values.get(name)
        if value is None:
            value = Tensor(graph.constants[graph.defaults.get(name, name)], HOST)
        return value

    for node in graph.nodes:
        results = run_node(node, [read(name) for name in node.inputs])
        if watch is not None:
            watch(node, results)
        for name, result in zip(node.outputs, results, strict=False):
            if name is not None:
                values[name] = result
    return [read(name) for name in graph.outputs]


def run_node(node: Node, operands: Sequence[Value]) -> tuple[Value, ...]:
    """The results of one node; bodies are run."""
    result = node.op.lower(*operands)
    if isinstance(result, Branch):
        taken = result.then if bool(result.condition) else result.orelse
        return tuple(evaluate(taken, result.operands))
    return result if isinstance(result, tuple) else (result,)
