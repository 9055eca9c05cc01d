"""Lowering of ``einsum`` to matrix products between views, or to products and sums."""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, Protocol

from burn.ops.elementwise import mul
from burn.ops.matmul import explicit, matmul
from burn.ops.reduction import sum as sum_
from burn.ops.shape import permute, reshape
from burn.primitive import Primitive


class Executor(Protocol):
    """The interface to compute primitives, or to append them to a plan."""

    def apply(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        shape: tuple[int, ...],
        **static: Any,
    ) -> Any:
        """Return the result of ``primitive``, of the given shape."""

    def is_constant(self, value: Any) -> bool:
        """Return whether an operand is the same in every run."""


def contracted(
    executor: Executor,
    equation: str,
    operands: list[Any],
    shapes: list[tuple[int, ...]],
) -> Any:
    """Return ``einsum`` of one or two operands of ``shapes``, computed by ``executor``.

    Return None if an axis is repeated in one operand, broadcast or empty, or if the
    equation does not match the operands.
    """
    terms, result = explicit(equation, [len(shape) for shape in shapes])
    extents = _extents(terms, result, shapes)
    if extents is None:
        return None
    work = _Work(executor, extents)
    first, *others = map(_Named, operands, terms)
    if others:
        product = _pair(work, first, others[0], result)
    else:
        product = work.summed(first, result)
    return work.permuted(product, result).value


@lru_cache
def has_matrices(equation: str, *ranks: int) -> bool:
    """Return whether the sum of two operands is a matrix product."""
    (x, y), result = explicit(equation, list(ranks))
    labels = _labels(x, y, result)
    return bool(set(x) & set(labels.summed) & set(y) and labels.left + labels.right)


class _Named(NamedTuple):
    """An argument with a label for each of its axes."""

    value: Any
    names: str


class _Labels(NamedTuple):
    """The axes of a product by kind: batch, of one operand, and summed."""

    batch: str
    left: str
    right: str
    summed: str


def _extents(
    terms: list[str], result: str, shapes: list[tuple[int, ...]]
) -> dict[str, int] | None:
    """Return the extents of all labels, None if one is repeated, empty or unnamed."""
    extents: dict[str, int] = {}
    for names, shape in zip(terms, shapes, strict=True):
        if len(set(names)) != len(names) or len(names) != len(shape):
            return None
        for name, extent in zip(names, shape, strict=True):
            if extents.setdefault(name, extent) != extent or not extent:
                return None
    are_named = extents.keys() >= set(result)
    return extents if are_named and len(set(result)) == len(result) else None


class _Work:
    """Operations on operands with labeled axes."""

    def __init__(self, executor: Executor, extents: dict[str, int]) -> None:
        self.is_constant, self.apply = executor.is_constant, executor.apply
        self._extents = extents

    def shape(self, *names: str) -> tuple[int, ...]:
        """Return the product of the extents of each group of labels."""
        return tuple(prod(self._extents[name] for name in group) for group in names)

    def permuted(self, x: _Named, names: str) -> _Named:
        """Return ``x`` with its axes in the order of ``names``."""
        if x.names == names:
            return x
        axes = tuple(x.names.index(name) for name in names)
        return _Named(self.apply(permute, (x.value, axes), self.shape(*names)), names)

    def grouped(self, x: _Named, *groups: str) -> Any:
        """Return the value of ``x`` with one axis for each group of labels."""
        x = self.permuted(x, "".join(groups))
        shape = self.shape(*groups)
        if shape == self.shape(*x.names):
            return x.value
        return self.apply(reshape, (x.value, shape), shape)

    def summed(self, x: _Named, names_left: str) -> _Named:
        """Return ``x`` summed over the axes that are not in ``names_left``."""
        names = "".join(name for name in x.names if name in names_left)
        if names == x.names:
            return x
        axes = tuple(i for i, name in enumerate(x.names) if name not in names_left)
        total = self.apply(sum_, (x.value, axes), self.shape(*names), keepdims=False)
        return _Named(total, names)


def _pair(work: _Work, x: _Named, y: _Named, result: str) -> _Named:
    """Return the contraction of two operands, with axes in any order."""
    x, y = work.summed(x, y.names + result), work.summed(y, x.names + result)
    if work.is_constant(x.value) and not work.is_constant(y.value):
        x, y = y, x  # a weight is on the right
    labels = _labels(x.names, y.names, result)
    if labels.summed and labels.left + labels.right:
        return _matrices(work, x, y, labels)
    names = result + labels.summed
    value = work.apply(
        mul, tuple(_spread(work, z, names) for z in (x, y)), work.shape(*names)
    )
    return work.summed(_Named(value, names), result)


def _labels(x: str, y: str, result: str) -> _Labels:
    """Return the labels by kind, those of the result in its order."""
    both = [name for name in result if name in x and name in y]
    left = [name for name in result if name in x and name not in y]
    right = [name for name in result if name not in x]
    summed = [name for name in x if name not in result]
    return _Labels(*("".join(names) for names in (both, left, right, summed)))


def _matrices(work: _Work, x: _Named, y: _Named, labels: _Labels) -> _Named:
    batch, left, right, summed = labels
    # Rows of a matrix without a batch may have several axes.
    rows = left if left and not batch else [left]
    first = work.grouped(x, *batch, *rows, summed)
    second = work.grouped(y, *batch, summed, right)
    shape = work.shape(*batch, *rows, right)
    product = work.apply(matmul, (first, second), shape)
    names = batch + left + right
    if shape == work.shape(*names):
        return _Named(product, names)
    plain = work.shape(*names)
    return _Named(work.apply(reshape, (product, plain), plain), names)


def _spread(work: _Work, x: _Named, names: str) -> Any:
    """Return the value of ``x`` with an axis for each name, of extent 1 if missing."""
    x = work.permuted(x, "".join(name for name in names if name in x.names))
    shape = tuple(work.shape(n)[0] if n in x.names else 1 for n in names)
    if shape == work.shape(*x.names):
        return x.value
    return work.apply(reshape, (x.value, shape), shape)
