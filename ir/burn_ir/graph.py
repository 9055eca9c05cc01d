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

#: Prefix of class names for local functions of a model.
FUNCTION = "def "
#: The scope of a node that runs in the model itself, outside of all modules.
ROOT_SCOPE = ("",)


@dataclass(frozen=True)
class Node:
    """An operator applied to named values.

    An omitted input or an unused output is None. ``scope`` is the path of the
    module that the node belongs to, as far as the exporter recorded it: () if it did
    not, ``ROOT_SCOPE`` in the model itself. ``classes`` are the class names along it.
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
        # The generated ``__init__`` of a frozen dataclass takes three times as long,
        # and models have many nodes.
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
        """Return this node with another operator and other operands."""
        return Node(op, inputs, self.outputs, self.name, self.scope, self.classes)


class Constants(Mapping[str, Array]):
    """Arrays by name, shared by a graph and all its subgraphs; append-only.

    A pass that transforms a weight stores the result under a new name, since other
    readers may use the original.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._names = UniqueNames()
        #: The name of the constant that a derived constant was computed from.
        self.source: dict[str, str] = {}
        #: Names that are ``Constant`` nodes in the file, not stored weights.
        self.literals: set[str] = set()
        #: The node that a constant was folded from; its operands are constants.
        self.recipes: dict[str, Node] = {}
        #: Whether arrays of the file have PyTorch's keys as names; None if not yet
        #: determined.
        self.has_keys: bool | None = None
        #: Whether an array is a parameter (or a buffer), if the file records it.
        self.trained: dict[str, bool] = {}
        #: Paths of layer weights whose dtype no module supports.
        self.layer_weights: dict[str, tuple[str, ...]] = {}
        #: Small arrays that are emitted as literals.
        self.inlined: set[str] = set()
        #: Arrays that all readers use as fill values, bounds or quantization scales.
        self.fills: set[str] = set()
        #: Scales and zero points of quantization, which are stored in the record.
        self.measured: set[str] = set()
        #: Arrays that their readers define as parameters, whatever their names.
        self.learned: set[str] = set()
        #: Values computed by nodes that replace stored arrays.
        self.made: set[str] = set()
        #: Values computed from the author's arrays, whose contents no type states.
        self.derived: set[str] = set()
        #: The author's non-persistent buffers, which no ``state_dict`` contains.
        self.transient: set[str] = set()
        #: Whether the file records which buffers are non-persistent.
        self.tells_transient = False
        #: The path of the author's module that is the root here: names begin with it.
        self.prefix: tuple[str, ...] = ()
        #: Parameters and buffers that the original program does not read.
        self.unread: tuple[str, ...] = ()

    def add(self, name: str, array: Array, source: str | None = None) -> str:
        """Store ``array``; return its name:

        ``name``, or a unique one derived from it.
        """
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
    """Nodes in topological order, with the types of their values.

    Every value is a graph input, a node's output or a constant. Subgraphs in
    attributes (bodies) are closed: values that they capture are among their inputs.
    ``defaults`` names the constant for an input that the caller omits.

    ``states`` names the stored arrays that a call replaces. The last inputs are
    their values before the call, and as many last outputs their values after it.
    Passes need no special case, since inputs are not constants and outputs are
    live.
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
    #: The version of each operator set that the file uses, by domain.
    opsets: Mapping[str, int] = field(default_factory=dict)
    #: The name of the program that wrote the file.
    producer: str = ""

    def type(self, name: str | None) -> Type | None:
        """Return the type of a value; None for an omitted operand."""
        if name is None:
            return None
        if name in self.types:
            return self.types[name]
        return Type.of(self.constants[name])

    @property
    def arguments(self) -> tuple[str, ...]:
        """The inputs that a caller passes: those that are no states."""
        return self.inputs[: len(self.inputs) - len(self.states)]

    @property
    def results(self) -> tuple[str, ...]:
        """The outputs that a caller gets: those that are no states."""
        return self.outputs[: len(self.outputs) - len(self.states)]

    # Cached, since passes often leave a graph unchanged.

    @cached_property
    def _kinds(self) -> frozenset[Kind]:
        return frozenset({type(node.op) for node in self.nodes})

    @cached_property
    def has_bodies(self) -> bool:
        """Whether a node may have a subgraph."""
        return any(kind.may_have_bodies() for kind in self._kinds)

    @cached_property
    def operators(self) -> frozenset[str]:
        """The operator names of the nodes, without their domains."""
        return frozenset({kind.onnx for kind in self._kinds})

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The producer of each value that is computed by a node."""
        return {out: n for n in self.nodes for out in n.outputs if out is not None}

    @cached_property
    def users(self) -> Mapping[str, Sequence[Node]]:
        """The nodes that read each value, repeated for repeated reads."""
        users: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                if name is not None:
                    users.setdefault(name, []).append(node)
        return users

    @cached_property
    def uses(self) -> Mapping[str, int]:
        """The number of reads of each value; graph outputs count as read."""
        counts = {name: len(nodes) for name, nodes in self.users.items()}
        for name in set(self.outputs):
            counts[name] = counts.get(name, 0) + 1
        return counts

    def with_nodes(self, nodes: tuple[Node, ...] | list[Node]) -> Graph:
        """Return this graph with other nodes."""
        return replace(self, nodes=tuple(nodes))


def nested_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and then all nodes of its bodies, in depth-first order."""
    yield node
    for body in node.op.bodies().values():
        for inner in body.nodes:
            yield from nested_nodes(inner)
