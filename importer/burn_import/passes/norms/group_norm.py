"""Recovers group normalization from instance normalization between reshapes."""

from dataclasses import dataclass

from burn.dtypes import is_float
from burn_import.rewriting.arrays import core, derive
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
    OnOperand,
    Replacement,
    Rule,
    Search,
    Stored,
    Value,
    fuse,
)
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import GroupNorm, InstanceNorm, LayerNorm
from burn_ir.ops.norm import GroupNormalization, InstanceNormalization


@dataclass(frozen=True, eq=False)
class Standard(OnOperand):
    """A value normalized per channel (axis 1) over all spatial axes."""

    def bind(self, node: Node, search: Search, match: Match) -> Match | None:
        epsilon = _epsilon(node, search)
        return None if epsilon is None else match.with_number("epsilon", epsilon)


def _epsilon(node: Node, search: Search) -> float | None:
    """Return the epsilon of a node that only normalizes channels, else None."""
    if isinstance(node.op, LayerNorm):
        x = search.graph.type(node.inputs[0])
        rank = 0 if x is None or x.shape is None else len(x.shape)
        # All axes except batch and channels.
        return node.op.epsilon if rank > 2 and node.op.axis == 2 - rank else None
    if isinstance(node.op, InstanceNorm):
        return node.op.epsilon
    if not isinstance(node.op, InstanceNormalization):
        return None
    for name, neutral in zip(node.inputs[1:], (1, 0), strict=True):
        array = None if name is None else search.number(name)
        if array is None or not (core(array) == neutral).all():
            return None
    return node.op.epsilon


@dataclass(frozen=True, eq=False)
class Reshaped(OnOperand):
    """A reshape of ``operand``, bound to ``label``."""

    label: str

    def bind(self, node: Node, search: Search, match: Match) -> Match | None:
        if node.op.domain or node.op.onnx != "Reshape":
            return None
        return match.with_value(self.label, node.output)


#: Operators that normalize channels.
MARKS = ("InstanceNorm", "InstanceNormalization", "LayerNorm")

_PLAIN = Reshaped(Standard(Reshaped(Value("x"), "grouped")), "out")
_SCALED = Call("Mul", _PLAIN, Stored("weight"))


def _groups(match: Match, search: Search) -> int | None:
    """Return the number of groups that are normalized; None if shapes do not fit."""
    x, grouped, out = (
        search.graph.type(match.values[label]) for label in ("x", "grouped", "out")
    )
    if x is None or grouped is None or out is None or not is_float(x.dtype):
        return None
    if not x.shape or not grouped.shape or out.shape != x.shape:
        return None
    if len(x.shape) < 2 or x.shape[0] != grouped.shape[0]:
        return None
    channels, groups = x.shape[1], grouped.shape[1]
    if not isinstance(channels, int) or not isinstance(groups, int):
        return None
    return groups if groups > 0 and channels % groups == 0 else None


def channel_vector(label: str, match: Match, search: Search) -> str | None:
    """Return a constant with one element per channel as a vector, else None."""
    name = match.values[label]
    x, array = search.graph.type(match.values["x"]), search.array(name)
    if x is None or x.shape is None or array is None or array.ndim > len(x.shape):
        return None
    shape = (1,) * (len(x.shape) - array.ndim) + array.shape
    beside = (1, x.shape[1], *(1 for _ in x.shape[2:]))
    if shape != beside or array.dtype != x.dtype:
        return None
    return derive(search.graph, name, array.reshape(-1), ".channels")


def _builder(*labels: str) -> Build:
    """Return a builder of the normalization with the weights of ``labels``."""

    def build(match: Match, search: Search) -> Replacement:
        groups, epsilon = _groups(match, search), match.numbers["epsilon"]
        if groups is None:
            return None
        x = match.values["x"]
        if not labels:
            return GroupNorm(num_groups=groups, epsilon=epsilon), (x,)
        weights = [channel_vector(label, match, search) for label in labels]
        operands = tuple(name for name in weights if name is not None)
        if len(operands) != len(weights):
            return None
        return GroupNormalization(num_groups=groups, epsilon=epsilon), (x, *operands)

    return build


RULES: tuple[Rule, ...] = (
    (Call("Add", _SCALED, Stored("bias")), _builder("weight", "bias")),
    (_PLAIN, _builder()),
)


def group_norm(graph: Graph) -> Graph:
    """Return ``graph`` with ``GroupNormalization`` for its decomposition.

    The decomposition is a reshape of groups to channels, a normalization of channels,
    the reshape back, and a weight and bias per channel. Without weights it becomes
    ``GroupNorm``. Results may differ by rounding.
    """
    return fuse(graph, RULES, *MARKS)
