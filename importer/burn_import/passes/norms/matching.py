"""Patterns that several normalizations share."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from burn.dtypes import HALVES, float32, is_float
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
    Number,
    OnOperand,
    Pattern,
    Replacement,
    Scalar,
    Search,
    Stored,
    either,
    product,
)
from burn_ir.graph import Node
from burn_ir.ops.fused import LayerNorm, RMSNorm
from burn_ir.ops.norm import LayerNormalization, RMSNormalization
from burn_ir.ops.support import known_ints
from burn_ir.types import Type

WEIGHT = Stored("weight")


@dataclass(frozen=True, eq=False)
class Mean(OnOperand):
    """The mean over the last axes with ``keepdims``; binds the first axis, negative."""

    def bind(self, node: Node, search: Search, match: Match) -> Match | None:
        axis = None if node.op.domain else _first_axis(node, search)
        return None if axis is None else match.with_number("axis", axis)


def _first_axis(node: Node, search: Search) -> int | None:
    """Return the first axis of a mean as a negative number, if all others follow."""
    attrs, x = node.op.attrs(), search.graph.type(node.inputs[0])
    rank = None if x is None or x.shape is None else len(x.shape)
    if node.op.onnx == "GlobalAveragePool" and rank is not None and rank > 2:
        return 2 - rank
    if node.op.onnx != "ReduceMean" or not attrs["keepdims"] or x is None:
        return None
    if len(node.inputs) < 2 or node.inputs[1] is None:
        return -rank if rank and not attrs["noop_with_empty_axes"] else None
    axes = known_ints(search.graph.type(node.inputs[1]))
    if not axes or (rank is None and max(axes) >= 0):
        return None
    behind = sorted({axis - (rank or 0) if axis >= 0 else axis for axis in axes})
    return behind[0] if behind == list(range(-len(axes), 0)) else None


@dataclass(frozen=True, eq=False)
class Normalized(OnOperand):
    """The result of a norm without weight that was fused before."""

    kind: type[LayerNorm] | type[RMSNorm]

    def bind(self, node: Node, search: Search, match: Match) -> Match | None:
        if not isinstance(node.op, self.kind):
            return None
        new = match.with_number("axis", node.op.axis)
        return new and new.with_number("epsilon", node.op.epsilon)


@dataclass(frozen=True, eq=False)
class Cast(Pattern):
    """A value cast to float32 or, if ``back``, to the half type of ``x``."""

    operand: Pattern
    back: bool = False

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        node = search.node(name)
        if node is None or node.op.onnx != "Cast" or node.inputs[0] is None:
            return
        dtype = search.graph.types[name].dtype
        if dtype not in HALVES if self.back else dtype != float32:
            return
        new = replace(match, nodes=(*match.nodes, node))
        for inner in self.operand.match(node.inputs[0], search, new):
            x = search.graph.type(inner.values["x"])
            expected = dtype if self.back else x and x.dtype
            if x is not None and x.dtype == expected and x.dtype in HALVES:
                yield inner


def root(x: Pattern) -> Pattern:
    """Return the pattern of a square root."""
    return either(Call("Sqrt", x), Call("Pow", x, Number(0.5)))


def inverse_root(x: Pattern) -> Pattern:
    """Return the pattern of 1 divided by a square root."""
    return either(
        Call("Reciprocal", root(x)),
        Call("Div", Number(1), root(x)),
        Call("Pow", x, Number(-0.5)),
        root(Call("Reciprocal", x)),
        root(Call("Div", Number(1), x)),
    )


def mean_square(x: Pattern) -> Pattern:
    """Return the pattern of the mean square plus epsilon."""
    return Call("Add", Mean(product(x, x)), Scalar("epsilon"))


def normalized(x: Pattern) -> Pattern:
    """Return the pattern of ``x`` divided by its root mean square."""
    square = mean_square(x)
    return either(Call("Div", x, root(square)), product(x, inverse_root(square)))


def weighted_norm(x: Pattern) -> Pattern:
    """Return the pattern of ``x`` divided by its root mean square, times a weight."""
    square = mean_square(x)
    return either(
        product(Call("Div", x, root(square)), WEIGHT),
        Call("Div", product(x, WEIGHT), root(square)),
        product(x, inverse_root(square), WEIGHT),
    )


def norm_builder(
    plain: type[LayerNorm] | type[RMSNorm],
    weighted: type[LayerNormalization] | type[RMSNormalization],
    *labels: str,
) -> Build:
    """Return a builder of the normalization with the weights of ``labels``."""

    def build(match: Match, search: Search) -> Replacement:
        if operand(match, search) is None:
            return None
        x = match.values["x"]
        axis, epsilon = int(match.numbers["axis"]), match.numbers["epsilon"]
        if not labels:
            return plain(axis=axis, epsilon=epsilon), (x,)
        weights = [weight(label, match, search) for label in labels]
        operands = tuple(name for name in weights if name is not None)
        if len(operands) != len(weights):
            return None
        return weighted(axis=axis, epsilon=epsilon), (x, *operands)

    return build


def operand(match: Match, search: Search) -> Type | None:
    """Return the type of ``x`` if it is floating and no constant broadcasts it."""
    x = search.graph.type(match.values["x"])
    if x is None or not is_float(x.dtype):
        return None
    rank = -int(match.numbers["axis"]) if x.shape is None else len(x.shape)
    return x if match.rank <= rank else None


def weight(label: str, match: Match, search: Search) -> str | None:
    """Return the constant bound to ``label`` if it has the shape of the features.

    The features are the extents of ``x`` from ``axis`` on. Leading axes of extent 1 are
    dropped. None if the constant does not fit.
    """
    name = match.values[label]
    x, own = search.graph.type(match.values["x"]), search.graph.type(name)
    if x is None or x.shape is None or own is None or own.shape is None:
        return None
    first = int(match.numbers["axis"])
    same, rank = own.shape[first:] == x.shape[first:], len(own.shape)
    if own.dtype != x.dtype or not same or rank > len(x.shape):
        return None
    if rank == -first:
        return name
    array = search.array(name)
    if array is None or set(own.shape[:first]) != {1}:
        return None
    features = array.reshape(array.shape[first:])
    return derive(search.graph, name, features, f".last_{-first}")
