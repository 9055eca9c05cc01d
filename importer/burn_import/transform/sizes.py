"""Extents read from the inputs of a cut instead of from removed values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.cast import Cast
from burn_ir.ops.shape import Concat, Reshape, Shape
from burn_ir.ops.support import ELEMENT_NUMBERS
from burn_ir.types import Type


class Sizes:
    """Builder of nodes that read extents of ``graph`` from ``inputs``."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Type]) -> None:
        self.graph = graph
        #: An input and an axis for each extent.
        self.places: dict[Dim, tuple[str, int]] = {}
        for name, value_type in inputs.items():
            for axis, dim in enumerate(value_type.shape or ()):
                self.places.setdefault(dim, (name, axis))

    def nodes(self, name: str) -> list[Node] | None:
        """Return nodes that compute value ``name``; None if its contents are unknown.

        The contents are known if inference found only numbers and extents of the
        inputs.
        """
        contents = self.graph.types[name].known
        if contents is None or contents.size == 0:
            return None
        dims: list[Dim] = list(contents.reshape(-1))
        if any(self.source_of(dim) is None and not _is_number(dim) for dim in dims):
            return None
        parts = [self.part(f"{name}_{i}", dim) for i, dim in enumerate(dims)]
        nodes = [node for node, _ in parts if node is not None]
        joined, shaped = f"{name}_joined", f"{name}_shaped"
        operands = tuple(operand for _, operand in parts)
        nodes.append(Node(Concat(0), operands, (joined,)))
        shape = self.number(f"{name}_shape", *contents.shape)
        nodes.append(Node(Reshape(), (joined, shape), (shaped,)))
        dtype = self.graph.types[name].dtype
        to = ELEMENT_NUMBERS[dtype]
        return [*nodes, Node(Cast(to), (shaped,), (name,))]

    def source_of(self, dim: Dim) -> tuple[str, int] | None:
        """Return an input and an axis with the extent ``dim``; None for numbers."""
        return None if _is_number(dim) else self.places.get(dim)

    def part(self, name: str, dim: Dim) -> tuple[Node | None, str]:
        """Return the name of a vector of ``dim``, and the node it needs if any."""
        source_axis = self.source_of(dim)
        if source_axis is None:
            return None, self.number(name, int(dim))
        source, axis = source_axis
        return Node(Shape(axis, axis + 1), (source,), (name,)), name

    def number(self, name: str, *values: int) -> str:
        """Store a vector and return its name."""
        array = np.array(values, np.int64)
        stored = self.graph.constants.add(name, array)
        self.graph.constants.literals.add(stored)
        return stored


def _is_number(dim: Dim) -> bool:
    return isinstance(dim, int | np.integer | np.bool_)
