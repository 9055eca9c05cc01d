"""The types of a graph in which one extent of the inputs has become a symbol."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from burn_ir.dim import Dim, bind, symbol, symbols
from burn_ir.errors import InvalidOperand
from burn_ir.graph import Graph, Node
from burn_ir.infer import bind_bodies, infer_op
from burn_ir.ops.shape import Concat, Expand, Shape
from burn_ir.types import Type


class BatchGraph:
    """A graph in which ``symbol`` replaces the extent ``old`` of the inputs.

    ``types`` has the new types of the inputs, and then of all values.
    """

    def __init__(
        self, graph: Graph, symbol: Dim, old: int, types: Mapping[str, Type]
    ) -> None:
        self.graph, self.symbol, self.old = graph, symbol, old
        self.types = dict(types)
        #: How many elements of a merged axis precede the batch, if not one.
        self.outer: dict[str, Dim] = {}
        #: Nodes to insert before the one that is being rewritten.
        self.inserted: list[Node] = []
        self.expansions = {
            node.output: node for node in graph.nodes if isinstance(node.op, Expand)
        }

    def keep(self, node: Node) -> None:
        """Take over the types of a node that the extent does not reach."""
        for name in filter(None, node.outputs):
            self.types[name] = self.graph.types[name]

    def is_unchanged(self, name: str | None) -> bool:
        if name is None or name not in self.types:
            return True
        new, old = self.types[name], self.graph.types.get(name)
        return new is old or (old is not None and _agree(new, old))

    def type(self, name: str | None) -> Type | None:
        if name is None:
            return None
        return self.types.get(name) or self.graph.type(name)

    def typed(self, node: Node) -> Node:
        """Return ``node``, the types of whose results are stored."""
        operands = [self.type(name) for name in node.inputs]
        op = bind_bodies(node.op, operands)
        for name, result in zip(node.outputs, infer_op(op, operands), strict=False):
            if name is not None:
                self.types[name] = result
        return node if op is node.op else replace(node, op=op)

    def note_outer(self, node: Node) -> None:
        """Note what precedes the batch in results that keep an operand's axis."""
        for name in node.inputs:
            if name in self.outer:
                (axis,) = self.axes(name)
                extent = self.types[name].dims[axis]
                for result in filter(None, node.outputs):
                    axes = self.axes(result)
                    if len(axes) == 1 and self.types[result].dims[axes[0]] == extent:
                        self.outer.setdefault(result, self.outer[name])

    def check_extents(self, node: Node) -> None:
        """Check that the results have the file's extents if the batch has."""
        for name in filter(None, node.outputs):
            new, old = self.types[name].shape, self.graph.types[name].shape
            if new is None or old is None:
                continue
            bound = [self.before(dim) for dim in new]
            numbers = zip(bound, old, strict=False)
            if len(new) != len(old) or any(
                isinstance(a, int) and isinstance(b, int) and a != b for a, b in numbers
            ):
                expected, got = list(map(str, old)), list(map(str, new))
                raise InvalidOperand(
                    f"expected a result that is [{', '.join(expected)}] for "
                    f"{self.symbol} = {self.old}, got [{', '.join(got)}]"
                )

    def before(self, dim: Dim) -> Any:
        """Return what ``dim`` is in the file."""
        names: dict[str, Any] = {name: symbol(name) for name in symbols(dim)}
        return bind(dim, {**names, str(self.symbol): self.old})

    def is_part(self, dim: Dim) -> bool:
        return str(self.symbol) in symbols(dim)

    def axes(self, name: str | None) -> list[int]:
        """Return the axes of a value whose extents depend on the batch."""
        value_type = self.type(name)
        shape = () if value_type is None else value_type.shape or ()
        return [axis for axis, dim in enumerate(shape) if self.is_part(dim)]

    def first_example(self, name: str, axis: int) -> str:
        """Return a value with the extent 1 that ``name`` repeats along ``axis``.

        Raises:
            InvalidOperand: the examples may differ.
        """
        if self.old == 1:
            return name
        if name in self.graph.constants:
            array = self.graph.constants[name]
            first = array.take([0], axis)
            if np.array_equal(array, np.broadcast_to(first, array.shape)):
                return self.graph.constants.add(f"{name}_first", first, name)
        expansion = self.expansions.get(name)
        if expansion is not None:
            source, dims = expansion.inputs[0], self.types[name].dims
            assert source is not None
            before = self.type(source)
            shape = (*dims[:axis], 1, *dims[axis + 1 :])
            if before is not None and before.shape == shape:
                return source
        raise InvalidOperand(
            f"expected {name!r} to repeat one example {self.old} times, got others"
        )

    def expand(self, node: Node, name: str, rank: int, axis: int) -> str:
        """Insert an expansion of ``name`` along ``axis``; return its result."""
        source, at = self.source(node)
        stem = f"{node.output}_operand_{len(self.inserted)}"
        extent, result = f"{stem}_batch", f"{stem}_expanded"
        self.insert(node, Shape(at, at + 1), (source,), extent)
        parts: list[str] = [extent]
        if axis:
            parts.insert(0, self.literal(f"{stem}_before", [1] * axis))
        if axis < rank - 1:
            parts.append(self.literal(f"{stem}_after", [1] * (rank - 1 - axis)))
        target = extent if len(parts) == 1 else f"{stem}_target"
        if target != extent:
            self.insert(node, Concat(0), tuple(parts), target)
        self.insert(node, Expand(), (name, target), result)
        return result

    def source(self, node: Node) -> tuple[str, int]:
        """Return an operand and an axis whose extent is the batch."""
        for name in node.inputs:
            for axis in self.axes(name):
                if name is not None and self.types[name].dims[axis] == self.symbol:
                    return name, axis
        raise InvalidOperand(f"expected an operand with the extent {self.symbol}")

    def literal(self, name: str, numbers: Any) -> str:
        """Store a vector of integers; return its name."""
        stored = self.graph.constants.add(name, np.array(numbers, np.int64))
        self.graph.constants.literals.add(stored)
        return stored

    def insert(self, node: Node, op: Any, inputs: tuple[str, ...], output: str) -> None:
        self.inserted.append(
            Node(op, inputs, (output,), node.name, node.scope, node.classes)
        )


def _agree(new: Type, old: Type) -> bool:
    """Return whether two types are equal, contents included."""
    if new.shape != old.shape or (new.known is None) != (old.known is None):
        return False
    if new.known is None or old.known is None:
        return True
    return bool(np.array_equal(new.known, old.known))
