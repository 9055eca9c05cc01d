"""Builder of untyped graphs, for readers of programs that are no ONNX files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from burn_ir.names import UniqueNames
from burn_ir.raw import RawGraph, RawNode
from burn_ir.types import Array, Type


@dataclass(frozen=True)
class Origin:
    """The source of nodes: a call's name, module path, and the classes along it."""

    name: str = ""
    scope: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass
class GraphBuilder:
    """Nodes of one graph; subgraphs share its names and constants.

    ``constants`` are the stored arrays of the model by name.
    """

    names: UniqueNames = field(default_factory=UniqueNames)
    constants: dict[str, Array] = field(default_factory=dict)
    nodes: list[RawNode] = field(default_factory=list)

    def inner(self) -> Self:
        """Return a builder of a subgraph, with the same names and constants."""
        return type(self)(self.names, self.constants)

    def unique(self, name: str) -> str:
        """Return ``name``, or the first free of ``name_2``, ``name_3``, ..."""
        return self.names.unique(name)

    def node(
        self,
        op_type: str,
        inputs: Sequence[str | None],
        outputs: Sequence[str],
        attrs: Mapping[str, Any],
        origin: Origin,
        domain: str = "",
    ) -> tuple[str, ...]:
        """Append a node and return the unique names of its outputs.

        Attributes that are None are left out. A node without a name is named after its
        first output.
        """
        names = tuple(self.unique(output) for output in outputs)
        present = {name: value for name, value in attrs.items() if value is not None}
        self.nodes.append(
            RawNode(
                *(op_type, domain, present, tuple(inputs), names),
                *(origin.name or names[0], origin.scope, origin.classes),
            )
        )
        return names

    def literal(self, name: str, array: Array, node: str = "") -> str:
        """Append a program constant as a ``Constant`` node; return its unique name."""
        output = self.unique(name)
        self.nodes.append(
            RawNode("Constant", "", {"value": array}, (), (output,), node)
        )
        return output

    def store(self, name: str, array: Array) -> str:
        """Store an array of the model; return its unique name."""
        unique = self.unique(name)
        self.constants[unique] = array
        return unique

    def body(self, inputs: Mapping[str, Type], outputs: Sequence[str]) -> RawGraph:
        """Return the nodes as a subgraph."""
        nodes = tuple(self.nodes)
        return RawGraph("body", dict(inputs), tuple(outputs), nodes, {})
