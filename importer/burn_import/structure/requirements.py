"""Notes on extras that a generated module needs, and on omissions."""

from collections.abc import Collection, Iterator
from itertools import chain

from burn_ir.graph import Graph, Node, nested_nodes
from burn_ir.ops.dropout import TrackedDropout


def extra_notes(graph: Graph) -> tuple[str, ...]:
    """Return a note for each extra, with the operators that need it."""
    needs: dict[str, set[str]] = {}
    for extra, operator in _extras(graph):
        needs.setdefault(extra, set()).add(operator)
    return tuple(
        f"To run {' and '.join(sorted(operators))}: pip install '{extra}'."
        for extra, operators in sorted(needs.items())
    )


def dropout_notes(graph: Graph, given: Collection[str]) -> tuple[str, ...]:
    """Return a note on dropout that was to be restored, if the file has none.

    ``given`` are the notes of the file's reader.
    """
    is_restored = any(_drops(node) for node in _nodes(graph))
    if is_restored or any(note.startswith("Dropout ") for note in given):
        return ()
    return ("The file records no dropout to restore.",)


def _drops(node: Node) -> bool:
    """Return whether a node is a layer with dropout."""
    return isinstance(node.op, TrackedDropout) or bool(node.op.attrs().get("dropout"))


def _nodes(graph: Graph) -> Iterator[Node]:
    return chain.from_iterable(map(nested_nodes, graph.nodes))


def _extras(graph: Graph) -> Iterator[tuple[str, str]]:
    for node in graph.nodes:
        if extra := node.op.extra():
            yield extra, node.op.onnx
        for body in node.op.bodies().values():
            yield from _extras(body)
