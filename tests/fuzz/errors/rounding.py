"""What rounding of the values inside of a graph does to its outputs.

Noise on the inputs does not reach what a node rounds away: the arc cosine of a number
near 0 is the same for all numbers around, and still has an error of its own, which a
tangent behind it makes large.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn import Tensor
from burn.backend.cpu import HOST
from burn_import.transform.precision import KINDS, in_precision
from burn_ir import Graph, ModelError, evaluate
from tests.conformance.run import built
from tests.fuzz.errors.noisy import noisy_outputs
from tests.fuzz.errors.precision import DRAWS, SAFETY, perturbed
from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.case import noise_between
from tests.fuzz.generator.trial import MOST_NOISE, scale_of
from tests.fuzz.gradients.weights import has_halves
from tests.laws.devices import leaves_of
from tests.laws.models import mapped

#: The errors of a dtype's own arithmetic, relative to the largest element.
FINE = 0.0
#: The same as ``SAFETY`` for steps of lower precision, which are on every value, and
#: for errors inside of nodes, which have several roundings each.
COARSE_SAFETY = 2.0
#: How often errors are drawn to tell which elements they change.
SPREADS = 8
#: A step below that of float64: the errors are those of each value's own dtype.
TINY = 2.0**-51


def noise_of_rounding(
    case: FuzzCase, feeds: Mapping[str, Any], step: float = FINE
) -> list[float]:
    """The difference that errors on every value of the graph make, by output.

    The errors are ``step`` relative to each element, or those of rounding: relative to
    the largest element of the value. Inside of nodes and bodies they are relative to
    each element. In a graph with halves, they are also those of all roundings to
    halves: onnxruntime leaves some out, where it drops a cast to halves and one back.

    It is 0 for all outputs if the graph does not run with errors, and for each where
    shapes or discrete values change, or that rounding alone changes by more than
    ``MOST_NOISE`` of its scale: :func:`spreads_of_rounding` tells which elements.
    """
    nothing = [0.0] * len(case.model.graph.output)
    try:
        graph, values = _graph_of(case), list(feeds.values())
        if graph is None:
            return nothing
        exact, noise = _measured(graph, values, step)
        if not step and has_halves(graph):
            wide = map(_between, exact, _without_halves(graph, values, exact))
            noise = [max(pair) for pair in zip(noise, wide, strict=True)]
    except (ArithmeticError, LookupError, ModelError, RuntimeError, ValueError):
        return nothing
    if step:
        return [n if np.isfinite(n) else 0.0 for n in noise]
    scales = [max(map(scale_of, arrays), default=0.0) for arrays in exact]
    limits = [MOST_NOISE * max(1.0, scale) for scale in scales]
    return [n if n <= most else 0.0 for n, most in zip(noise, limits, strict=True)]


def spreads_of_rounding(
    case: FuzzCase, feeds: Mapping[str, Any]
) -> list[list[Any]] | None:
    """By how much errors of rounding change each element of each array of each output.

    The errors are relative to each element, so that large ones say nothing of others.
    A spread is infinite for what is finite in one run alone and, in a graph with
    halves, for discrete values that change. None in place of an array whose shape
    changes, and for a graph that does not run with errors.
    """
    try:
        graph, values = _graph_of(case), list(feeds.values())
        if graph is None:
            return None
        exact = perturbed(graph, values, 0.0, np.random.default_rng(0))[0]
        halves = has_halves(graph)
        others = [(1.0, _without_halves(graph, values, exact))] if halves else []
        for seed in range(SPREADS):
            rng = np.random.default_rng(seed)
            moved = perturbed(graph, values, TINY, rng, keeps_exact=True)[0]
            others.append((SAFETY, moved))
            others.append((COARSE_SAFETY, noisy_outputs(graph, values, TINY, seed)))
    except (ArithmeticError, LookupError, ModelError, RuntimeError, ValueError):
        return None
    return [
        [
            _spread(place, x, [(f, y[n]) for f, y in others], halves)
            for place, x in enumerate(xs)
        ]
        for n, xs in enumerate(exact)
    ]


def within_spreads(
    got: Sequence[Any], expected: Sequence[Any], spreads: list[list[Any]] | None
) -> list[Any]:
    """``got`` with what is expected for elements that differ by no more than that."""
    if spreads is None or not len(got) == len(expected) == len(spreads):
        return list(got)
    return list(map(_value_within, got, expected, spreads))


def _value_within(got: Any, expected: Any, spreads: Sequence[Any]) -> Any:
    if isinstance(expected, list):
        if not isinstance(got, list) or not len(got) == len(expected) == len(spreads):
            return got
        return list(map(_array_within, got, expected, spreads))
    return _array_within(got, expected, spreads[0]) if len(spreads) == 1 else got


def _array_within(got: Any, expected: Any, spread: Any) -> Any:
    if not isinstance(got, np.ndarray) or spread is None:
        return got
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return got
    near = np.isinf(spread)
    if got.dtype.kind in "fc":
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            near |= abs(got.astype(wide) - expected.astype(wide)) <= spread
    return np.where(near, expected, got)


def _spread(
    place: int, exact: Any, others: Sequence[tuple[float, list[Any]]], halves: bool
) -> Any:
    """The largest difference of the arrays at ``place``, element by element."""
    result = np.zeros(exact.shape)
    for factor, arrays in others:
        moved = arrays[place] if place < len(arrays) else None
        if moved is None or (moved.shape, moved.dtype) != (exact.shape, exact.dtype):
            return None
        if exact.dtype.kind not in "fc":
            change = np.where((moved != exact) & halves, np.inf, 0)
        else:
            wide = np.complex128 if exact.dtype.kind == "c" else np.float64
            both = np.isfinite(moved) & np.isfinite(exact)
            with np.errstate(all="ignore"):
                steps = factor * abs(moved.astype(wide) - exact.astype(wide))
            same = (moved == exact) | (np.isnan(moved) & np.isnan(exact))
            change = np.where(both, steps, np.where(same, 0, np.inf))
        result = np.maximum(result, change)
    return result


def _graph_of(case: FuzzCase) -> Graph | None:
    """The graph of a case; None if it is random."""
    with tempfile.TemporaryDirectory() as folder:
        graph = built(case.model, Path(folder))
    return graph if all(node.op.deterministic for node in graph.nodes) else None


def _measured(
    graph: Graph, values: Sequence[Any], step: float
) -> tuple[list[Any], list[float]]:
    """The outputs, each a list of arrays, and the largest difference by errors."""

    def outputs(size: float, seed: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        return perturbed(graph, values, size, rng, at_scale=not step)[0]

    exact = outputs(0.0, 0)
    noise = [0.0] * len(exact)
    for seed in range(1, DRAWS + 1):
        safety = COARSE_SAFETY if step else SAFETY
        inside = noisy_outputs(graph, values, step or TINY, seed)
        draws = [(safety, outputs(step or TINY, seed)), (COARSE_SAFETY, inside)]
        for factor, moved in draws:
            spreads = map(_between, exact, moved)
            noise = [max(n, factor * s) for n, s in zip(noise, spreads, strict=True)]
    return exact, noise


def _without_halves(
    graph: Graph, values: Sequence[Any], exact: Sequence[Any]
) -> list[Any]:
    """The outputs if no value is rounded to halves, in the dtypes of ``exact``."""
    wide = in_precision(graph, "float64")

    def given(x: Any) -> Any:
        array = np.asarray(x)
        return Tensor(array.astype(np.float64) if array.dtype in KINDS else array, HOST)

    with np.errstate(all="ignore"):
        results = evaluate(wide, [mapped(given, x) for x in values])
        arrays = [[leaf.numpy() for leaf in leaves_of(result)] for result in results]
        return [
            [x.astype(y.dtype) for x, y in zip(xs, ys, strict=False)]
            for xs, ys in zip(arrays, exact, strict=True)
        ]


def _between(exact: Sequence[Any], moved: Sequence[Any]) -> float:
    """The largest difference of finite elements; infinite if another thing changes.

    An element that is finite in one of the two alone says nothing of the others.
    """
    if len(exact) != len(moved):
        return float("inf")
    return max(map(_between_arrays, exact, moved), default=0.0)


def _between_arrays(exact: Any, moved: Any) -> float:
    if exact.shape != moved.shape or exact.dtype != moved.dtype:
        return float("inf")
    if exact.dtype.kind not in "fc":
        return 0.0 if np.array_equal(exact, moved) else float("inf")
    both = np.isfinite(exact) & np.isfinite(moved)
    return noise_between(exact[both], moved[both])
