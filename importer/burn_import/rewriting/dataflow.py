"""Dataflow queries of passes: producers and readers of values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

import ml_dtypes
import numpy as np

from burn.dtypes import is_float
from burn_import.provenance.trainable import is_learned
from burn_import.rewriting.arrays import core
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.names import free_name
from burn_ir.ops.support import known_ints
from burn_ir.types import Array, Type

#: Assumed bound of matrix products, which are sums of unknown length.
PRODUCT = 1e18
#: Least assumed bound of a weight: one that starts at zero has other elements once it
#: is trained.
TRAINED = 1.0
#: The largest number of nodes followed when bounding a value.
DEPTH = 24


@dataclass
class Dataflow:
    """A graph with the producers and users of its values."""

    graph: Graph
    producers: dict[str, Node] = field(init=False)
    users: Mapping[str, Sequence[Node]] = field(init=False)
    outputs: frozenset[str] = field(init=False)
    #: Names of the values that were created.
    new: set[str] = field(default_factory=set)
    _magnitudes: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.producers = dict(self.graph.producers)
        self.users = self.graph.users
        self.outputs = frozenset(self.graph.outputs)

    def made_by(self, name: str | None, *ops: str) -> Node | None:
        """Return the node with first output ``name``, if it is of one of ``ops``.

        Only operators of ONNX's default domain are considered.
        """
        node = None if name is None else self.producers.get(name)
        if node is None or node.op.domain or node.op.onnx not in ops:
            return None
        return node if node.outputs[0] == name else None

    def stored(self, name: str | None) -> Array | None:
        """Return the array of a constant; None for other values."""
        if name is None or name in self.graph.types:
            return None
        return self.graph.constants.get(name)

    def scalar(self, name: str | None) -> float | None:
        """Return the single element of a float constant; None unless it is finite.

        Parameters are excluded: training changes them.
        """
        array = self.stored(name)
        if array is None or array.size != 1 or not is_float(array.dtype):
            return None
        if is_learned(self.graph, name):
            return None
        value = float(array.reshape(()))
        return value if isfinite(value) else None

    def factor(self, node: Node | None) -> tuple[str | None, float]:
        """Return the value that a node scales by a constant, and the factor."""
        if node is None or node.op.onnx not in ("Mul", "Div"):
            return None, 1.0
        pairs = [node.inputs, node.inputs[::-1]]
        for name, other in pairs[: 1 if node.op.onnx == "Div" else 2]:
            number, x = self.scalar(other), self.graph.type(name)
            if number is None or number == 0 or x is None or x.shape is None:
                continue
            if self.graph.constants[str(other)].ndim <= len(x.shape):
                return name, 1 / number if node.op.onnx == "Div" else number
        return None, 1.0

    def axes(self, node: Node) -> tuple[int, ...] | None:
        """Return the axes of a reduction as negative numbers; None unless known.

        Only reductions with ``keepdims`` are considered.
        """
        x, attrs = self.graph.type(node.inputs[0]), node.op.attrs()
        if len(node.inputs) < 2 or not attrs["keepdims"]:
            return None
        axes = known_ints(self.graph.type(node.inputs[1]))
        if axes is None or x is None or x.shape is None:
            return None
        return tuple(sorted(axis - len(x.shape) for axis in x.axes(axes)))

    def extents(self, name: str | None) -> tuple[Dim, ...]:
        """Return the shape of a value; () if its rank is unknown."""
        t = self.graph.type(name)
        return () if t is None or t.shape is None else t.shape

    def piece(self, name: str | None) -> tuple[str | None, int, int] | None:
        """Return the source, begin and end of a slice of the last axis.

        The source is a value's name; None if ``name`` is no such slice.
        """
        node = None if name is None else self.producers.get(name)
        if node is None or node.op.domain or name is None:
            return None
        if node.op.onnx == "Split":
            return self._split_piece(node, name)
        return self._slice_piece(node) if node.op.onnx == "Slice" else None

    def _split_piece(self, node: Node, name: str) -> tuple[str | None, int, int] | None:
        axis, rank = node.op.attrs()["axis"], len(self.extents(node.inputs[0]))
        before = node.outputs[: node.outputs.index(name) + 1]
        sizes = [self.extents(n)[-1:] for n in before if n is not None]
        widths = [n for size in sizes for n in size if isinstance(n, int)]
        if axis not in (-1, rank - 1) or len(widths) != len(before):
            return None
        return node.inputs[0], sum(widths[:-1]), sum(widths)

    def _slice_piece(self, node: Node) -> tuple[str | None, int, int] | None:
        shape, operands = self.extents(node.inputs[0]), (*node.inputs, None, None)[1:5]
        starts, ends, axes, steps = (known_ints(self.graph.type(n)) for n in operands)
        one_axis = axes in ((-1,), (len(shape) - 1,)) and len(shape) > 0
        if (
            not one_axis
            or starts is None
            or ends is None
            or not isinstance(shape[-1], int)
        ):
            return None
        if steps not in (None, (1,)) or (steps is None and operands[3] is not None):
            return None
        start, end, _ = slice(starts[0], ends[0]).indices(shape[-1])
        return node.inputs[0], start, end

    def fresh(self, name: str) -> str:
        """Return a new value name derived from ``name``; the same in every run."""
        name = free_name(name, self.graph.types, self.graph.constants, self.new)
        self.new.add(name)
        return name

    def is_discrete(self, name: str | None) -> bool:
        """Return whether a value is of integers or bools."""
        t = self.graph.type(name)
        return t is not None and t.dtype.kind in "biu"

    def are_inside(self, inner: Iterable[Node], last: Node) -> bool:
        """Return whether only ``inner`` and ``last`` read the results of ``inner``.

        A ``Shape`` node whose result is known does not count as a reader.
        """
        nodes = list(inner)
        among = {id(node) for node in nodes} | {id(last)}
        outputs = self.outputs
        return all(
            name not in outputs
            and all(id(n) in among or self.is_idle(n) for n in self.users[name])
            for node in nodes
            for name in node.outputs
            if name is not None and name in self.users
        ) and all(outputs.isdisjoint(node.outputs) for node in nodes)

    def is_idle(self, node: Node) -> bool:
        """Return whether a node is a ``Shape`` whose result is known."""
        if node.op.domain or node.op.onnx != "Shape":
            return False
        return self.graph.types[node.output].known is not None

    def magnitude(self, name: str | None, depth: int = DEPTH) -> float:
        """Return a bound of a value's absolute elements; infinity if none is known."""
        if name is None or depth == 0:
            return float("inf")
        if name not in self._magnitudes:
            self._magnitudes[name] = self._magnitude(name, depth)
        return self._magnitudes[name]

    def _magnitude(self, name: str, depth: int) -> float:
        array = self.stored(name)
        if array is not None and array.dtype.kind not in "OSU":
            is_trained = is_learned(self.graph, name)
            return max(largest(array), TRAINED if is_trained else 0.0)
        t = self.graph.type(name)
        if t is not None and self.is_discrete(name):
            return 1.0 if t.dtype == np.bool_ else 2.0 ** (8 * t.dtype.itemsize)
        node = self.producers.get(name)
        if node is None or node.op.domain or t is None:
            return float("inf")
        if node.op.onnx == "ConstantOfShape":
            value = node.op.attrs()["value"]
            return 0.0 if value is None else largest(value)
        if node.op.onnx in BOUNDED:
            return BOUNDED[node.op.onnx]
        bounds = [self.magnitude(n, depth - 1) for n in _content(node)]
        if node.op.onnx == "Div":
            divided, factor = self.factor(node)
            bounds = [self.magnitude(divided, depth - 1) * abs(factor)]
        if not bounds:
            return float("inf")
        bound = _of_result(node, bounds)
        return bound if bound <= greatest(t) else float("inf")


def largest(array: Array) -> float:
    """Return the largest absolute element; infinity if one is not finite."""
    once = core(array)
    if not once.size:
        return 0.0
    bound = float(np.max(np.abs(once.astype(np.float64))))
    return bound if isfinite(bound) else float("inf")


def greatest(t: Type) -> float:
    """Return the largest finite number of a floating type; 0 for other types."""
    if not is_float(t.dtype):
        return 0.0
    return float(ml_dtypes.finfo(t.dtype).max)  # type: ignore[no-untyped-call]


#: Bounds of results that hold for any operands.
BOUNDED = {"MatMul": PRODUCT, "Softmax": 1.0, "Sigmoid": 1.0, "Tanh": 1.0}

#: Operators whose result has only elements of the first operand, up to sign.
MOVES = frozenset(
    [
        "Cast",
        "Identity",
        "Expand",
        "Unsqueeze",
        "Squeeze",
        "Reshape",
        "Flatten",
        "Transpose",
        "Slice",
        "Gather",
        "GatherND",
        "GatherElements",
        "Neg",
        "Abs",
        "Tile",
        "Split",
    ]
)


def _content(node: Node) -> tuple[str | None, ...]:
    """Return the operands that bound the result's elements; () if unknown."""
    if node.op.onnx in MOVES:
        return node.inputs[:1]
    if node.op.onnx == "Where":
        return node.inputs[1:]
    return node.inputs if node.op.onnx in ("Add", "Sub", "Mul", "Concat") else ()


def _of_result(node: Node, bounds: list[float]) -> float:
    if node.op.onnx in ("Add", "Sub"):
        return sum(bounds)
    if node.op.onnx == "Mul":
        return bounds[0] * bounds[1]
    return max(bounds)
