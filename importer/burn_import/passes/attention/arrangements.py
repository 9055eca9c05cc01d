"""Trace the elements of values to their sources, through reshapes, slices and sums."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, zip_longest
from math import prod
from typing import NamedTuple

import numpy as np

from burn import Tensor
from burn.backend.cpu import HOST
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.dim import Dim, bind, symbols
from burn_ir.evaluate import run_node
from burn_ir.graph import Node
from burn_ir.ops.support import known_dims
from burn_ir.types import Array

#: The most nodes that are followed.
STEPS = 24
#: The most elements of a value whose arrangement is computed.
LARGEST = 1 << 22
#: The most summands of a value: sums of sums of one value double them.
MOST_TERMS = 64
#: Operators whose result has elements of the first operand, in another order.
MOVES = (
    *("Expand", "Flatten", "Gather", "Identity", "Reshape"),
    *("Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
)


class Term(NamedTuple):
    """A summand of a value: ``factor`` times elements of the value ``name``.

    ``indices`` are the elements' positions in that value, whose shape is ``shape``.
    """

    name: str
    shape: tuple[int, ...]
    indices: Array
    factor: float = 1.0

    def is_plain(self) -> bool:
        """Return whether the elements are those of the value, in its order."""
        order = np.arange(prod(self.shape))
        return np.array_equal(self.indices.ravel(), order)


class UnfollowedError(Exception):
    """A value has no arrangement for the chosen extents."""


class EqualExtentsError(Exception):
    """Symbols must have the numbers in ``sizes`` for operands to fit."""

    def __init__(self, sizes: dict[str, int]) -> None:
        super().__init__()
        self.sizes = sizes


@dataclass
class Arrangements:
    """The terms of values, for numbers in place of symbolic extents.

    Symbols without a number in ``sizes`` get primes, so that equal arrangements are
    equal for all extents.
    """

    flow: Dataflow
    sizes: dict[str, int] = field(default_factory=dict)

    def terms(self, name: str, steps: int = STEPS) -> list[Term]:
        """Return the terms whose sum is the value ``name``.

        Raises:
            UnfollowedError: a shape depends on data, or does not fit the extents.
        """
        node = self.flow.producers.get(name)
        if node is None or not steps or node.op.domain:
            return [self.whole(name)]
        source, factor = self.flow.factor(node)
        if source is not None:
            terms = self.terms(source, steps - 1)
            return [t._replace(factor=t.factor * factor) for t in terms]
        if node.op.onnx in MOVES and node.inputs[0] is not None:
            terms = self.terms(node.inputs[0], steps - 1)
            return [self.moved(node, name, term) for term in terms]
        if node.op.onnx in ("Add", "And"):
            terms = [t for x in node.inputs for t in self.terms(str(x), steps - 1)]
            if len(terms) > MOST_TERMS:
                raise UnfollowedError
            return self.broadcast(terms)
        return [self.whole(name)]

    def whole(self, name: str) -> Term:
        """Return the value itself as a term."""
        t = self.flow.graph.type(name)
        if t is None or t.shape is None:
            raise UnfollowedError
        shape = self.extents(t.shape)
        if prod(shape) > LARGEST:
            raise UnfollowedError
        return Term(name, shape, np.arange(prod(shape)).reshape(shape))

    def moved(self, node: Node, name: str, term: Term) -> Term:
        """Return a term after a node that moves its elements."""
        return term._replace(indices=self.apply(node, name, term.indices))

    def apply(self, node: Node, name: str, indices: Array) -> Array:
        """Return the elements of the result ``name`` of a node that moves them."""
        try:
            if node.op.onnx == "Reshape":
                return indices.reshape(self.target(node, indices.shape))
            if node.op.onnx == "Expand":
                shape = np.broadcast_shapes(indices.shape, self.target(node, ()))
                return np.broadcast_to(indices, shape)
        except ValueError as error:
            raise UnfollowedError from error
        arrays = [self.flow.stored(n) for n in node.inputs[1:]]
        if any(a is None and n for a, n in zip(arrays, node.inputs[1:], strict=True)):
            raise UnfollowedError
        operands = [None if a is None else Tensor(a, HOST) for a in arrays]
        results = run_node(node, [Tensor(indices, HOST), *operands])
        return np.asarray(results[node.outputs.index(name)].numpy())

    def broadcast(self, terms: list[Term]) -> list[Term]:
        """Return terms with indices of one shape.

        Raises:
            EqualExtentsError: a symbol must have another number.
        """
        shapes = [term.indices.shape[::-1] for term in terms]
        for extents in zip_longest(*shapes, fillvalue=1):
            self.equate([extent for extent in extents if extent != 1])
        arrays = np.broadcast_arrays(*(term.indices for term in terms))
        pairs = zip(terms, arrays, strict=True)
        return [term._replace(indices=array) for term, array in pairs]

    def equate(self, extents: Sequence[int]) -> None:
        """Check that extents are equal.

        Raises:
            EqualExtentsError: they are if symbols have other numbers.
            UnfollowedError: they are not.
        """
        symbols_of = {number: name for name, number in self.sizes.items()}
        for extent in extents:
            one, other = sorted((extents[0], extent), key=symbols_of.__contains__)
            if one != other and other not in symbols_of:
                raise UnfollowedError
            if one != other:
                raise EqualExtentsError({**self.sizes, symbols_of[other]: one})

    def target(self, node: Node, before: Sequence[int]) -> list[int]:
        """Return the shape that a reshape or an expansion is to, -1 if it is open."""
        t, out = self.flow.graph.type(node.inputs[1]), self.flow.extents(node.output)
        known = None if t is None else known_dims(t)
        if known is None:
            return list(self.extents(out))
        keeps = node.op.onnx == "Reshape" and not node.op.attrs()["allowzero"]
        numbers = self.extents(known)
        zeros = [keeps and number == 0 for number in numbers]
        return [before[at] if z else numbers[at] for at, z in enumerate(zeros)]

    def extents(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        """Return dimensions as numbers."""
        for name in (name for dim in dims for name in symbols(dim)):
            self.sizes.setdefault(name, self._unused_prime())
        return tuple(int(bind(dim, self.sizes)) for dim in dims)

    def _unused_prime(self) -> int:
        used = set(self.sizes.values())
        return next(n for n in count(11) if n not in used and _is_prime(n))


def rows_of_constant(term: Term) -> tuple[str, int] | None:
    """Return the array that ``term`` is consecutive rows of, and the first row."""
    width = prod(term.shape[1:])
    if not term.indices.size or not width or term.factor != 1:
        return None
    first = int(term.indices.flat[0])
    shape = (len(term.indices), *term.shape[1:])
    order = np.arange(first, first + prod(shape)).reshape(shape)
    is_whole = first % width == 0 and np.array_equal(term.indices, order)
    return (term.name, first // width) if is_whole else None


class Heads(NamedTuple):
    """Heads in the columns of a projection from ``begin`` on, and all their extents.

    ``is_first`` is whether the batch is the projection's first axis.
    """

    is_first: bool
    begin: int
    batch: int
    length: int
    heads: int
    size: int


def heads_of(term: Term, is_transposed: bool) -> Heads | None:
    """Return how heads are split off a projection of rank 3; None if otherwise.

    The result is ``[batch, heads, length, size]``, or has one axis for the first two.
    """
    indices = term.indices.swapaxes(-1, -2) if is_transposed else term.indices
    if len(term.shape) != 3 or indices.ndim not in (3, 4) or not indices.size:
        return None
    rows = np.arange(prod(term.shape)).reshape(term.shape)
    length, size = indices.shape[-2:]
    for is_first in (True, False):
        x = rows if is_first else rows.swapaxes(0, 1)
        batch, begin = len(x), int(indices.flat[0]) % term.shape[-1]
        heads = prod(indices.shape[:-2]) // batch
        x = x[..., begin : begin + heads * size]
        if x.size != indices.size or x.shape[1] != length:
            continue
        split = x.reshape(batch, length, heads, size).swapaxes(1, 2)
        if np.array_equal(split.reshape(indices.shape), indices):
            return Heads(is_first, begin, batch, length, heads, size)
    return None


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))
