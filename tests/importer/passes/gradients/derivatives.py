"""Gradients of a graph, and inputs at which those of two graphs are compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from math import prod
from typing import Any

import numpy as np

from burn import Tensor, dtypes
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn_ir import Graph
from burn_ir.evaluate import evaluate
from tests.importer.passes.cases import SIZES, arguments
from tests.modules import Array

#: Kinks of activations: integers, mostly 0, 3 and 6.
KINKS = np.array([-6.0, -3.0, -2.5, -1.0, 0.0, 0.0, 0.5, 1.0, 2.5, 3.0, 6.0])
#: The dtypes of masks.
BOOLS = (dtypes.bool_,)
#: The distance of the points on both sides of a kink.
STEP = 1e-6


def places(graph: Graph) -> Iterator[list[Tensor]]:
    """Yield inputs of two sizes: random, at kinks, equal, masks of True or False.

    In half of the samples the beginning of each mask is False, so that rows are padded
    or fully masked.
    """
    for sizes in SIZES:
        given = arguments(graph, sizes, 1)
        yield given
        if any(x.dtype in BOOLS for x in given):
            yield [mapped(x, padded) for x in given]
            yield [mapped(x, np.zeros_like, BOOLS) for x in given]
            yield [mapped(x, np.ones_like, BOOLS) for x in given]
            yield [mapped(x, at_kinks, dtypes.FLOATS) for x in map(as_padded, given)]
        if any(x.dtype in dtypes.FLOATS for x in given):
            yield [mapped(x, at_kinks, dtypes.FLOATS) for x in given]
            yield [mapped(x, np.zeros_like, dtypes.FLOATS) for x in given]


def mapped(x: Tensor, function: Any, kinds: Any = BOOLS) -> Tensor:
    """Return ``function`` of the elements of ``x`` if its kind is in ``kinds``."""
    return Tensor(np.asarray(function(x.numpy())), Cpu()) if x.dtype in kinds else x


def as_padded(x: Tensor) -> Tensor:
    return mapped(x, padded)


def padded(mask: Array) -> Array:
    """Return ``mask`` with nothing true in half of its samples."""
    results = np.array(mask)
    if results.ndim:
        results[: (len(results) + 1) // 2] = False
    return results


def at_kinks(x: Array) -> Array:
    """Return numbers of ``KINKS`` in the shape of ``x``."""
    rng = np.random.default_rng(x.size)
    return np.asarray(rng.choice(KINKS, x.shape)).astype(x.dtype)


def gradients(graph: Graph, inputs: list[Tensor]) -> dict[str, Array]:
    """Return gradients of a random-weighted sum of all floating outputs.

    By name of every floating input and of every floating constant that nodes read;
    zeros without dependence.
    """
    tape = Autodiff(Cpu())
    stored = read_constants(graph)
    arrays = dict(zip(graph.inputs, (x.numpy() for x in inputs), strict=True))
    arrays |= {name: graph.constants[name] for name in stored}
    leaves = {
        name: leaf(Tensor(tape.from_numpy(x), tape), x) for name, x in arrays.items()
    }
    given = replace(graph, inputs=(*graph.inputs, *stored))
    with np.errstate(all="ignore"):
        total = weighted_sum(evaluate(given, list(leaves.values())))
        result: Any = {} if total is None else total.backward()
        return {
            name: result[x].numpy() if x in result else np.zeros_like(arrays[name])
            for name, x in leaves.items()
            if dtypes.is_float(x.dtype)
        }


def leaf(tensor: Tensor, array: Array) -> Tensor:
    return tensor.require_grad() if dtypes.is_float(array.dtype) else tensor


def read_constants(graph: Graph) -> list[str]:
    """Return the names of stored floating arrays that are operands or outputs.

    ``Constant`` nodes are literals and no weights.
    """
    read = [name for node in graph.nodes for name in node.inputs]
    return [
        name
        for name in dict.fromkeys([*read, *graph.outputs])
        if name is not None
        and name in graph.constants
        and name not in graph.inputs
        and name not in graph.constants.literals
        and dtypes.is_float(graph.constants[name].dtype)
    ]


def weighted_sum(values: list[Any]) -> Tensor | None:
    """Return a random-weighted sum of all elements of floating tensors, or None."""
    rng = np.random.default_rng(3)
    total: Any = None
    for y in values:
        if not isinstance(y, Tensor) or not dtypes.is_float(y.dtype):
            continue
        weights = np.asarray(rng.normal(size=y.shape))
        term = (y.cast(dtypes.float64) * weights).sum()
        total = term if total is None else total + term
    return total if isinstance(total, Tensor) and total.node is not None else None


def of_weights(
    before: Graph, after: Graph, result: Mapping[str, Array]
) -> dict[str, Array]:
    """Return gradients by the constants of ``before``, from those by derived ones.

    A constant is left out if a derived one is no permutation of its elements.
    """
    weights = {name: before.constants[name] for name in read_constants(before)}
    totals: dict[str, Array] = {}
    lost = set()
    for name in read_constants(after):
        source = source_of(after, name, weights)
        if source is None:
            continue
        grad = turned_back(after.constants[name], weights[source], result[name])
        if grad is None:
            lost.add(source)
        else:
            totals[source] = totals.get(source, np.zeros_like(grad)) + grad
    return {name: grad for name, grad in totals.items() if name not in lost}


def source_of(graph: Graph, name: str, weights: Mapping[str, Array]) -> str | None:
    """Return the constant in ``weights`` that ``name`` derives from."""
    while name not in weights:
        if name not in graph.constants.source:
            return None
        name = graph.constants.source[name]
    return name


def turned_back(derived: Array, weight: Array, grad: Array) -> Array | None:
    """Return ``grad`` in the order of ``weight``, or None if that is unknown."""
    if prod(derived.shape) != prod(weight.shape) or weight.ndim > 5:
        return None
    for axes in permutations(range(weight.ndim)):
        moved = weight.transpose(axes)
        if np.array_equal(moved.reshape(derived.shape), derived):
            back = grad.reshape(moved.shape).transpose(np.argsort(axes))
            return np.asarray(back)
    return None


def compare(before: Graph, after: Graph, error: float, weights: bool = True) -> None:
    """Fail unless the gradients of two graphs agree where the first are finite.

    At a kink any slope between both sides is accepted. The error is relative to the
    largest element. Constants are compared if ``weights`` is set.
    """
    for number, inputs in enumerate(places(before)):
        result = gradients(after, inputs)
        stored = of_weights(before, after, result) if weights else {}
        result = {n: x for n, x in result.items() if n in before.inputs} | stored
        nearby = [gradients(before, inputs)]
        wrong = outside(result, nearby, error)
        if wrong and any(np.isin(x.numpy(), KINKS).any() for x in wide(inputs)):
            for step in (STEP, -STEP):
                nearby.append(gradients(before, [shifted(x, step) for x in inputs]))
            wrong = outside(result, nearby, error)
        assert not wrong, f"gradients of {', '.join(wrong)}, inputs {number}"


def outside(
    result: Mapping[str, Array], nearby: Sequence[Mapping[str, Array]], error: float
) -> list[str]:
    """Return the names of gradients outside the range of those nearby."""
    names = []
    for name, gradient in result.items():
        near = np.stack([other[name].astype(np.float64) for other in nearby])
        usable = np.isfinite(near).all(0)
        low, high = near.min(0)[usable], near.max(0)[usable]
        room = error * max(1.0, float(np.abs(near[:, usable]).max(initial=0.0)))
        a = gradient.astype(np.float64)[usable]
        if not ((low - room <= a) & (a <= high + room)).all():
            names.append(name)
    return names


def wide(inputs: Iterable[Tensor]) -> list[Tensor]:
    """Return the inputs of float64."""
    return [x for x in inputs if x.dtype == dtypes.float64]


def shifted(x: Tensor, by: float) -> Tensor:
    """Return ``x`` with ``by`` added to each element, if it is of float64."""
    if x.dtype != dtypes.float64:
        return x
    return Tensor(np.asarray(x.numpy() + by), Cpu())
