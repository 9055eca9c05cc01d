"""The tape: a graph of recorded calls, traversed backwards for gradients."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from burn import dtypes
from burn.dtypes import FLOAT_SET
from burn.tensor import Tensor

if TYPE_CHECKING:
    from burn.primitive import GradientReads, Primitive

#: Gets the key and the gradient of a leaf.
Receiver = Callable[[Any, Tensor], None]

_order = count()


class TensorSpec:
    """The shape and dtype of a value that the tape does not keep."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: dtypes.DType) -> None:
        self.shape, self.dtype = shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


def kept_operands(
    reads: "GradientReads", sources: list[Any], operands: list[Any]
) -> tuple[Any, ...]:
    """Return operands with specs of the floating tensors that no gradient reads.

    Integers stay: they may be axes or sizes, which every rule reads.
    """
    needed: tuple[int, ...] = ()
    if reads.operands:
        for position, source in enumerate(sources):
            if source is not None:
                needed += reads.operands.get(position, ())
    saved = list(operands)
    for position, value in enumerate(operands):
        kind = type(value)
        if kind is Tensor:  # as in _without_values, a call of which takes as long
            data = value.data
            dtype = data.dtype
            if position not in needed and dtype in FLOAT_SET:
                saved[position] = TensorSpec(data.shape, dtype)
        elif (kind is list or kind is tuple) and position not in needed:
            saved[position] = kind(map(_without_values, value))
    return tuple(saved)


def _without_values(value: Any) -> Any:
    """Return the spec of a floating tensor, also in lists and tuples."""
    if type(value) is Tensor and value.dtype in FLOAT_SET:
        return TensorSpec(value.shape, value.dtype)
    if type(value) in (list, tuple):
        return type(value)(map(_without_values, value))
    return value


def kept_results(reads: "GradientReads", result: Any) -> Any:
    """Return the result without the tensors that no gradient reads."""
    if type(result) is Tensor:
        return result if reads.results else None
    return tuple(
        item if position in reads.results else TensorSpec(item.shape, item.dtype)
        for position, item in enumerate(result)
    )


def nodes_in(source: Any) -> "Iterator[Node]":
    if isinstance(source, Node):
        yield source
    elif source is not None:
        for item in source:
            if item is not None:
                yield from nodes_in(item)


class Node:
    """A node of the tape; ``order`` increases with time and is topological."""

    __slots__ = ("order",)

    def __init__(self) -> None:
        self.order = next(_order)

    def parents(self) -> "Iterator[Node]":
        """Yield the nodes that this one was computed from."""
        yield from ()

    def backward(self, grad: Any) -> "Iterator[tuple[Node, Any]]":
        """Yield the parent nodes, each with its contribution to the gradient."""
        yield from ()

    def release(self) -> None:
        """Drop values that were recomputed for a backward pass that ends here."""

    def consume(self) -> None:
        """Drop all values after the only backward pass; another one is an error."""
        self.release()


class Leaf(Node):
    """A leaf, whose gradient is returned: ``key`` is the box, or the node itself."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        super().__init__()
        self.key: Any = self if key is None else key

    def __getstate__(self) -> dict[str, Any]:
        return {"key": self.key}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__init__()  # its order is that of the process which reads it
        self.key = state["key"]


# The operands of a call whose values were dropped.
_CONSUMED: tuple[Any, ...] = (None,)


class CallNode(Node):
    """A recorded call of a primitive."""

    __slots__ = ("inner", "primitive", "result", "sources", "static")

    def __init__(
        self,
        primitive: "Primitive[..., Any]",
        sources: tuple[Any, ...],
        inner: tuple[Any, ...],
        static: dict[str, Any],
        result: Any,
    ) -> None:
        self.order = next(_order)  # without a call of Node's, which takes as long
        self.primitive = primitive
        self.sources = sources
        self.inner = inner
        self.static = static
        self.result = result

    @property
    def result_count(self) -> int:
        """The number of results, each of which has an :class:`Output`."""
        return len(self.result)

    def parents(self) -> Iterator[Node]:
        yield from nodes_in(self.sources)

    def values(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the result and the operands, on the backend below the tape."""
        return self.result, self.inner

    def consume(self) -> None:
        self.result, self.inner = None, _CONSUMED

    def backward(self, grad: Any) -> Iterator[tuple[Node, Any]]:
        if self.inner is _CONSUMED:
            raise ValueError(
                f"the history of {self.primitive.name} was dropped by the backward "
                "pass of its training step: call backward() inside the step's function"
            )
        result, operands = self.values()
        if type(result) is tuple and not self.primitive.partial:
            sample = next(part for part in grad if part is not None)
            grad = tuple(
                _zeros_of(item, sample) if part is None else part
                for part, item in zip(grad, result, strict=True)
            )
        rule = self.primitive.rule
        assert rule is not None
        shares = rule(grad, result, *operands, **self.static)
        if not isinstance(shares, tuple):
            shares = (shares,)
        for source, share in zip(self.sources, shares, strict=False):
            yield from _shares(source, share)


class Output(Node):
    """One result of a call with several results."""

    __slots__ = ("call", "position")

    def __init__(self, call: Any, position: int) -> None:
        super().__init__()
        self.call = call
        self.position = position

    def parents(self) -> Iterator[Node]:
        yield self.call


def _shares(source: Any, share: Any) -> Iterator[tuple[Node, Any]]:
    """Yield pairs of a node and its gradient, computed only for existing nodes."""
    if source is None or share is None:
        return
    value = share() if callable(share) else share
    if isinstance(source, Node):
        yield source, value
        return
    for item, part in zip(source, value, strict=True):
        yield from _shares(item, part)


def _zeros_of(value: Tensor | TensorSpec, other: Tensor) -> Tensor:
    """Return zeros of the type of ``value`` on the backend of ``other``."""
    zeros = np.zeros(value.shape, value.dtype)
    return Tensor(other.backend.from_numpy(zeros), other.backend)


def swept(
    seeds: dict[Node, Any],
    ends: Collection[Node] = (),
    receiver: Receiver | None = None,
    *,
    retain_history: bool = True,
) -> dict[Node, Any]:
    """Return the gradients of leaves and ``ends``, at which the tape is not followed.

    ``seeds`` are the gradients of the nodes from which the tape is read backwards.
    Without ``retain_history`` the values of each node are dropped after its use.
    """
    nodes = _reachable(seeds, ends)
    drop = methodcaller("release" if retain_history else "consume")
    try:
        return _swept_nodes(nodes, seeds, ends, receiver, drop)
    finally:
        for node in nodes:
            node.release()


def _swept_nodes(
    nodes: list[Node],
    seeds: dict[Node, Any],
    ends: Collection[Node],
    receiver: Receiver | None,
    drop: Callable[[Node], None],
) -> dict[Node, Any]:
    """As :func:`swept`, of ``nodes``, the newest first; ``drop`` gets those done."""
    gradients: dict[Node, Any] = {}
    pending = dict(seeds)
    complete = {} if receiver is None else _completed_by(nodes)
    for node in nodes:
        grad = None if isinstance(node, Leaf) else pending.pop(node, None)
        if grad is None:
            drop(node)
            continue
        if node in ends:
            gradients[node] = grad
        elif isinstance(node, Output):
            parts = pending.setdefault(node.call, [None] * node.call.result_count)
            parts[node.position] = grad
        else:
            for source, share in node.backward(grad):
                earlier = pending.get(source)
                pending[source] = share if earlier is None else earlier + share
        drop(node)
        for leaf in complete.get(node, ()):
            if receiver is not None and leaf in pending:
                receiver(leaf.key, pending[leaf])
    # In the order of the calls: a parameter has a new leaf each time that it is set,
    # and two recordings of a step, between which an update may lie, must be equal.
    leaves = {node: grad for node, grad in pending.items() if isinstance(node, Leaf)}
    return gradients | leaves


def _completed_by(nodes: list[Node]) -> dict[Node, list[Leaf]]:
    """Return the leaves by the node that adds the last share to their gradients."""
    last, places = dict[Leaf, Node](), dict[Any, set[Leaf]]()
    for node in nodes:
        for source in node.parents():
            if isinstance(source, Leaf):
                last[source] = node
                places.setdefault(source.key, set()).add(source)
    complete: dict[Node, list[Leaf]] = {}
    for leaf, node in last.items():
        if len(places[leaf.key]) == 1:
            complete.setdefault(node, []).append(leaf)
    return complete


def leaves_below(root: Node) -> Iterator[Leaf]:
    """Yield the leaves that ``root`` depends on."""
    yield from (node for node in _reachable([root], ()) if isinstance(node, Leaf))


def _reachable(roots: Iterable[Node], ends: Collection[Node]) -> list[Node]:
    """Return every node from ``roots`` to ``ends`` and leaves, the newest first."""
    seen = set(roots)
    stack = [node for node in seen if node not in ends]
    while stack:
        for source in stack.pop().parents():
            if source not in seen:
                seen.add(source)
                if source not in ends:
                    stack.append(source)
    return sorted(seen, key=lambda node: node.order, reverse=True)
