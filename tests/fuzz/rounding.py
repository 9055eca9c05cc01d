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

from burn import Tensor, dtypes
from burn.backend.cpu import HOST
from burn_import.transform.precision import KINDS, in_precision
from burn_ir import Graph, ModelError, evaluate
from tests.conformance.run import built
from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.case import noise_between
from tests.fuzz.generator.trial import MOST_NOISE, scale_of
from tests.fuzz.noisy import noisy_outputs
from tests.fuzz.precision import DRAWS, SAFETY, perturbed
from tests.fuzz.weights import bodies_of
from tests.laws.devices import leaves_of
from tests.laws.models import mapped

#: The errors of a dtype's own arithmetic, relative to the largest element.
FINE = 0.0
#: The same as ``SAFETY`` for steps of lower precision, which are on every value, and
#: for errors inside of nodes, which have several roundings each.
COARSE_SAFETY = 2.0
#: A step below that of float64: the errors are those of each value's own dtype.
TINY = 2.0**-51


def noise_of_rounding(
    case: FuzzCase, feeds: Mapping[str, Any], step: float = FINE
) -> list[float]:
    """The difference that errors on every value of the graph make, by output.

    The errors are ``step`` relative to each element, or those of rounding: relative to
    the largest element of the value, and inside of nodes and bodies to each. In a graph
    with halves, they are also those of all roundings to halves: onnxruntime leaves some
    out, where it drops a cast to halves and one back.

    It is 0 for all outputs if the graph does not run with errors, and at most
    ``MOST_NOISE`` of an output's scale with rounding alone. Where shapes or discrete
    values change, it is 0, or infinite if rounding to halves is what may change them.
    """
    nothing = [0.0] * len(case.model.graph.output)
    try:
        with tempfile.TemporaryDirectory() as folder:
            graph = built(case.model, Path(folder))
        if not all(node.op.deterministic for node in graph.nodes):
            return nothing
        halves, values = _has_halves(graph), list(feeds.values())
        exact, noise = _measured(graph, values, step)
        if halves and not step:
            wide = map(_between, exact, _without_halves(graph, values, exact))
            noise = [max(pair) for pair in zip(noise, wide, strict=True)]
    except (ArithmeticError, LookupError, ModelError, RuntimeError, ValueError):
        return nothing
    if step:
        return [n if np.isfinite(n) else 0.0 for n in noise]
    undecided = float("inf") if halves else 0.0
    scales = [max(map(scale_of, arrays), default=0.0) for arrays in exact]
    limits = [MOST_NOISE * max(1.0, scale) for scale in scales]
    return [
        min(pair) if np.isfinite(pair[0]) else undecided
        for pair in zip(noise, limits, strict=True)
    ]


def _has_halves(graph: Graph) -> bool:
    """Whether a value of ``graph`` or of a body is of halves."""
    parts = (graph, *bodies_of(graph))
    return any(t.dtype in dtypes.HALVES for p in parts for t in p.types.values())


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
        draws = [(safety, outputs(step or TINY, seed))]
        if not step:
            draws.append((COARSE_SAFETY, noisy_outputs(graph, values, TINY, seed)))
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
