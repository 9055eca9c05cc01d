"""Parts that do the same become instances of one class."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from burn_import.compiler.names import Namespace
from burn_import.structure.parts import Call, Part, Tree
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.types import Array

#: Stored arrays of at most this many elements may be written into the source.
_INLINE = 8


def share_classes(root: Part, graph: Graph) -> Tree:
    """The tree below ``root``, one class for parts with equal signatures."""
    run = _Sharing(graph)
    run.names.unique(root.class_name)
    run.visit(root)
    return Tree(root, run.classes, run.model, run.parts, run.names)


class _Sharing:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = Namespace()
        self.first: dict[Hashable, Part] = {}
        self.model: dict[int, Part] = {}
        self.classes: list[Part] = []
        self.parts: list[Part] = []

    def visit(self, part: Part) -> None:
        """Give ``part`` its class: that of an equal one before, or a new name."""
        key = signature(part, self.graph)
        known = self.first.get(key)
        self.model[id(part)] = known or part
        self.parts.append(part)
        if known is None:
            self.first[key] = part
            if not part.sequence:
                if part.path:
                    part.class_name = self.class_name(part)
                self.classes.append(part)
        else:
            part.class_name = known.class_name
        for item in part.items:
            if isinstance(item, Call):
                self.visit(item.part)

    def class_name(self, part: Part) -> str:
        """The part's own name, with its parent's in front if that is taken."""
        if part.class_name in self.names.taken:
            words = [s for s in part.path[:-1] if not s.isdigit()]
            if words and part.path[-1] != words[-1] and not part.path[-1].isdigit():
                parent = words[-1][:1].upper() + words[-1][1:]
                joined = parent.replace("_", "") + part.class_name
                return self.names.unique(joined)
        return self.names.unique(part.class_name)


def signature(part: Part, graph: Graph) -> Hashable:
    """Equal for two parts whose classes would read the same, names of values aside."""
    numbers: dict[str, int] = {}

    def number(name: str | None) -> Hashable:
        if name is None:
            return None
        if name in graph.constants:
            return _constant(graph, name)
        if name not in graph.types and name not in numbers:
            return name
        return numbers.setdefault(name, len(numbers))

    inputs = tuple((number(name), _shape(graph, name)) for name in part.inputs)
    items = tuple(_item(item, part, graph, number) for item in part.items)
    return inputs, items, tuple(number(name) for name in part.outputs)


def _shape(graph: Graph, name: str) -> str:
    return graph.types[name].name


def _item(
    item: Node | Call,
    part: Part,
    graph: Graph,
    number: Callable[[str | None], Hashable],
) -> Hashable:
    names = (*item.inputs, *item.outputs)
    values = tuple(number(name) for name in names)
    if isinstance(item, Call):
        return item.path, signature(item.part, graph), values
    path = part.layer_paths.get(id(item))
    if path is not None:  # the layer holds its weights: their values do not show
        values = tuple(
            _kind(graph.constants[n]) if n in graph.constants else number(n)
            for n in names
            if n is not None
        )
    return path, _op(item.op), values, _inner_paths(item, part)


def _inner_paths(node: Node, part: Part) -> Hashable:
    return tuple(
        part.layer_paths.get(id(inner))
        for body in node.op.bodies().values()
        for inner in body.nodes
    )


def _op(op: Op) -> Hashable:
    """The operator with its attributes; a body is only equal to itself."""
    attrs = tuple((name, _hashable(value)) for name, value in op.attrs().items())
    return type(op).__name__, attrs


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Graph):
        return id(value)
    return value if isinstance(value, Hashable) else repr(value)


def _kind(array: Array) -> Hashable:
    return array.dtype.str, array.shape


def _constant(graph: Graph, name: str) -> Hashable:
    """What of a stored array shows in the source: its type, and small contents."""
    array = graph.constants[name]
    kind = _kind(array)
    if array.size > _INLINE:
        return kind
    return kind, array.tobytes() if array.dtype != object else repr(array.tolist())
