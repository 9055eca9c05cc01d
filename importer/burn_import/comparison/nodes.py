"""Graph nodes by name, described without the names of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burn_ir.raw import RawGraph, RawModel, RawNode

if TYPE_CHECKING:
    from burn_ir.types import Array

#: The name under which the results of a graph are compared.
OUTPUTS = "(outputs)"
#: Largest integer constants that are compared by value here. They are sizes, axes and
#: indices, which have no key among the weights.
_MOST_COMPARED = 4096


@dataclass(frozen=True)
class NodeFacts:
    """An operator with its attributes, and the producer of each of its inputs."""

    operator: str
    attributes: Mapping[str, str]
    inputs: tuple[str, ...]


def operator_counts(model: RawModel) -> dict[str, int]:
    """Return the number of nodes of each operator, including subgraphs."""
    from burn_ir.support_check import walk

    return dict(Counter(_operator(node) for node in walk(model.graph)))


def node_facts(model: RawModel) -> dict[str, NodeFacts]:
    """Return the nodes by name; a node without a name is called ``Relu #2``."""
    return dict(_facts(model.graph, {}, Counter()))


def _facts(
    graph: RawGraph, around: Mapping[str, str], numbers: Counter[str]
) -> Iterator[tuple[str, NodeFacts]]:
    producers = {**around, **{name: f"input {name}" for name in graph.inputs}}
    producers |= {
        name: _constant_text(array) for name, array in graph.constants.items()
    }
    names = [_name(node, numbers) for node in graph.nodes]
    for name, node in zip(names, graph.nodes, strict=True):
        for number, output in enumerate(node.outputs):
            if output is not None:
                producers[output] = f"{name}:{number}" if number else name
    for name, node in zip(names, graph.nodes, strict=True):
        attributes = {}
        for key, value in node.attrs.items():
            if isinstance(value, RawGraph):
                yield from _facts(value, producers, numbers)
            else:
                attributes[key] = _text(value)
        sources = tuple(producers.get(source or "", "none") for source in node.inputs)
        yield name, NodeFacts(_operator(node), attributes, sources)
    results = tuple(producers.get(name, "none") for name in graph.outputs)
    yield _unique_name(OUTPUTS, numbers), NodeFacts("", {}, results)


def _name(node: RawNode, numbers: Counter[str]) -> str:
    if node.name:
        return _unique_name(node.name, numbers)
    numbers[node.op_type] += 1
    return f"{node.op_type} #{numbers[node.op_type]}"


def _unique_name(name: str, numbers: Counter[str]) -> str:
    """Return ``name``, with a number appended if it is already in use."""
    numbers[name] += 1
    return name if numbers[name] == 1 else f"{name} #{numbers[name]}"


def _operator(node: RawNode) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _text(value: Any) -> str:
    return _constant_text(value) if hasattr(value, "dtype") else repr(value)


def _constant_text(array: Array) -> str:
    """Return the type of a constant, and its values unless it is a weight."""
    from burn.store.tensor_matching import type_text

    kind = type_text(array.dtype, array.shape)
    is_size = array.dtype.kind in "iub" and array.size <= _MOST_COMPARED
    return f"{kind} {array.tolist()}" if is_size or array.size == 1 else kind
