"""The graph of operators that passes rewrite and emission reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from burn_ir.names import UniqueNames
from burn_ir.types import Array, Type

if TYPE_CHECKING:
    from burn_ir.op import Op

    Kind = type[Op]

#: What the names of classes begin with that are local functions of a model.
FUNCTION = "def "


@dataclass(frozen=True)
class Node:
    """One operator applied to values, which are known by name.

    An omitted input or an unused output is None. ``scope`` is the path of the module
    that the node belongs to, as far as the exporter told, and ``classes`` the names of
    the classes along it.
    """

    op: Op
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    name: str = ""
    scope: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def __init__(
        self,
        op: Op,
        inputs: tuple[str | None, ...],
        outputs: tuple[str | None, ...],
        name: str = "",
        scope: tuple[str, ...] = (),
        classes: tuple[str, ...] = (),
    ) -> None:
        # What ``dataclass`` writes sets fields one by one: three times the time, and
        # models have many nodes.
        self.__dict__.update(
            op=op,
            inputs=inputs,
            outputs=outputs,
            name=name,
            scope=scope,
            classes=classes,
        )

    @property
    def output(self) -> str:
        """The name of the first result."""
        name = self.outputs[0]
        assert name is not None
        return name

    def with_op(self, op: Op, inputs: tuple[str | None, ...]) -> Node:
        """This node with another operator, of other operands."""
        return Node(op, inputs, self.outputs, self.name, self.scope, self.classes)


class Constants(Mapping[str, Array]):
    """Arrays by name, shared by a graph and all its bodies. Only ever added to.

    A pass that turns a weight stores the result under a new name, so that whoever else
    uses the weight keeps what it had.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._names = UniqueNames()
        #: For a derived constant, the name of the one it was made from.
        self.source: dict[str, str] = {}
        #: Names that the file has as nodes (``Constant``), not as stored weights.
        self.literals: set[str] = set()
        #: The node that a constant was folded from, of operands that are constants.
        self.recipes: dict[str, Node] = {}
        #: Whether arrays of the file are called by keys of PyTorch; None if not asked.
        self.has_keys: bool | None = None
        #: Whether an array is a parameter or a buffer, where the file says so.
        self.trained: dict[str, bool] = {}
        #: Where the weights of layers are that no module holds in their dtype.
        self.layer_weights: dict[str, tuple[str, ...]] = {}
        #: Small arrays that are written in the source where they are read.
        self.inlined: set[str] = set()
        #: Arrays that all readers use as fill values, bounds or quantization scales.
        self.fills: set[str] = set()
        #: Scales and zero points of quantization, which the record keeps.
        self.measured: set[str] = set()
        #: Values that nodes make in the place of stored arrays.
        self.made: set[str] = set()
        #: Buffers of the author's that are in no ``state_dict``.
        self.transient: set[str] = set()
        #: Whether the file says which buffers these are.
        self.tells_transient = False
        #: Parameters and buffers that the program as it was read does not read.
        self.unread: tuple[str, ...] = ()

    def add(self, name: str, array: Array, source: str | None = None) -> str:
        """The name under which ``array`` is stored: ``name``, or one made from it."""
        unique = self._names.unique(name)
        self._arrays[unique] = array
        if source is not None:
            self.source[unique] = source
        return unique

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which they can run, with the types of their values.

    Every value is a graph input, a node's output or a constant. Graphs in attributes
    (bodies) are closed: what they use from outside is among their inputs.
    ``defaults`` names the constant that stands in for an input left out by the caller.

    ``states`` names the stored arrays that a call replaces. The last inputs are what
    they hold before it, and as many last outputs what they hold afterwards: no pass has
    to know of them, since inputs are not constants and outputs are needed.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    types: Mapping[str, Type]
    constants: Constants
    defaults: Mapping[str, str] = field(default_factory=dict)
    states: tuple[str, ...] = ()
    doc: str = ""
    #: Which version of each operator set the file was written for, by domain.
    opsets: Mapping[str, int] = field(default_factory=dict)
    #: The program that wrote the file, as it names itself.
    producer: str = ""

    def type(self, name: str | None) -> Type | None:
        """What is known of a value; None for an omitted operand."""
        if name is None:
            return None
        if name in self.types:
            return self.types[name]
        return Type.of(self.constants[name])

    @property
    def given(self) -> tuple[str, ...]:
        """The inputs that a caller gives: those that are no states."""
        return self.inputs[: len(self.inputs) - len(self.states)]

    @property
    def results(self) -> tuple[str, ...]:
        """The outputs that a caller gets: those that are no states."""
        return self.outputs[: len(self.outputs) - len(self.states)]

    # Passes ask the same of a graph that the one before them left as it is.

    @cached_property
    def _kinds(self) -> frozenset[Kind]:
        return frozenset({type(node.op) for node in self.nodes})

    @cached_property
    def has_bodies(self) -> bool:
        """Whether a node may run a graph of its own."""
        return any(kind.may_have_bodies() for kind in self._kinds)

    @cached_property
    def operators(self) -> frozenset[str]:
        """The names of the operators at its nodes, of whatever domain."""
        return frozenset({kind.onnx for kind in self._kinds})

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that makes each value that a node makes."""
        return {out: n for n in self.nodes for out in n.outputs if out is not None}

    @cached_property
    def users(self) -> Mapping[str, Sequence[Node]]:
        """The nodes that read each value, once for every time they do."""
        users: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                if name is not None:
                    users.setdefault(name, []).append(node)
        return users

    @cached_property
    def uses(self) -> Mapping[str, int]:
        """How often each value is read; an output is read from outside, too."""
        counts = {name: len(nodes) for name, nodes in self.users.items()}
        for name in set(self.outputs):
            counts[name] = counts.get(name, 0) + 1
        return counts

    def with_nodes(self, nodes: tuple[Node, ...] | list[Node]) -> Graph:
        """This graph with other nodes."""
        return replace(self, nodes=tuple(nodes))


def nested_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and then all nodes of its bodies, in depth-first order."""
    yield node
    for body in node.op.bodies().values():
        for inner in body.nodes:
            yield from nested_nodes(inner)
