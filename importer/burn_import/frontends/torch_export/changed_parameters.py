"""Gradients of parameters that a program changes in place."""

from collections.abc import Iterator
from dataclasses import replace

from burn.dtypes import is_float
from burn_ir.names import UniqueNames
from burn_ir.raw import RawGraph, RawNode


def with_parameter_gradients(graph: RawGraph) -> RawGraph:
    """Return ``graph`` with gradients of the parameters that it changes in place.

    PyTorch changes a parameter only where it records no gradients, such as the table
    of ``nn.Embedding(max_norm=1.0)``. Later reads have the new value, and their
    gradients are those of the parameter: they become
    ``new.detach() + (parameter - parameter.detach())``.
    """
    first = len(graph.outputs) - len(graph.states)
    changes = {
        after: name
        for name, after in zip(graph.states, graph.outputs[first:], strict=True)
        if graph.trained.get(name) and is_float(graph.states[name].dtype)
    }
    if not changes:
        return graph
    produced = (name or "" for node in graph.nodes for name in node.outputs)
    names = UniqueNames([*graph.inputs, *graph.constants, *produced])
    nodes: list[RawNode] = []
    values: dict[str, str] = {}
    for node in graph.nodes:
        changed = [name for name in node.outputs if name in changes]
        values |= {name: names.unique(name) for name in changed if name is not None}
        outputs = tuple(values.get(name or "", name) for name in node.outputs)
        nodes.append(replace(node, outputs=outputs) if changed else node)
        for name in changed:
            assert name is not None
            nodes += _with_gradient(node, name, values[name], changes[name], names)
    states = [values.get(name, name) for name in graph.outputs[first:]]
    return replace(graph, nodes=tuple(nodes), outputs=(*graph.outputs[:first], *states))


def _with_gradient(
    node: RawNode, name: str, value: str, parameter: str, names: UniqueNames
) -> Iterator[RawNode]:
    """Yield nodes whose result ``name`` is ``value``, with the parameter's gradient."""

    def call(op: str, output: str, *inputs: str, domain: str = "") -> RawNode:
        return RawNode(
            *(op, domain, {}, inputs, (output,), output, node.scope, node.classes)
        )

    new, old, zero = (names.unique(name) for _ in range(3))
    yield call("Detach", new, value, domain="burn")
    yield call("Detach", old, parameter, domain="burn")
    yield call("Sub", zero, parameter, old)
    yield call("Add", name, new, zero)
