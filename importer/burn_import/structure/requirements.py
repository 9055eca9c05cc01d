"""Packages that a generated module needs in addition to ``burn``."""

from __future__ import annotations

from collections.abc import Iterator

from burn_ir.graph import Graph


def extra_notes(graph: Graph) -> tuple[str, ...]:
    """Return a note for each extra, with the operators that need it."""
    needs: dict[str, set[str]] = {}
    for extra, operator in _extras(graph):
        needs.setdefault(extra, set()).add(operator)
    return tuple(
        f"To run {' and '.join(sorted(operators))}: pip install '{extra}'."
        for extra, operators in sorted(needs.items())
    )


def _extras(graph: Graph) -> Iterator[tuple[str, str]]:
    for node in graph.nodes:
        if extra := node.op.extra():
            yield extra, node.op.onnx
        for body in node.op.bodies().values():
            yield from _extras(body)
